#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/auth/oidc/IssuerConfig.h"
#include "api/config/ServeConfig.h"
#include "controller/Services.h"
#include "controller/contract/Quotas.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::program {

// The content of a data directory, for commands that work without a server.

std::unique_ptr<controller::Tokens> offlineTokens(const std::string& data_dir);
/// Returns the pools that the server has stored; none if no server ever used the directory.
std::vector<controller::Pool> declaredPools(const std::string& data_dir);
/// Returns the pools of the manifests that the configuration names. Throws UsageError for a file
/// that cannot be read, Error for a file that is not a manifest.
std::vector<controller::Pool> declaredInFiles(const cli::Setting<std::vector<std::string>>& files);

/// Returns the issuers of --oidc; none if it is not given. Throws UsageError.
std::vector<auth::IssuerConfig> issuersInFile(const cli::Setting<std::string>& file);
/// Returns the tenants' quotas in such files. Throws UsageError for a file that is wrong.
std::map<std::string, controller::QuotaSpec> quotasInFiles(
    const cli::Setting<std::vector<std::string>>& files);

}  // namespace hearth::program
