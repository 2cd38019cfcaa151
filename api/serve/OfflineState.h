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
/// The pools as its server keeps them; none if no server ever had the directory.
std::vector<controller::Pool> declaredPools(const std::string& data_dir);
/// Those of the manifests that the configuration names. Throws UsageError for one that cannot be
/// read, Error for one that is none.
std::vector<controller::Pool> declaredInFiles(const cli::Setting<std::vector<std::string>>& files);

/// The issuers of --oidc; none where it is not given. Throws UsageError.
std::vector<auth::IssuerConfig> issuersInFile(const cli::Setting<std::string>& file);
/// Quotas of tenants, from such files. Throws UsageError for one that is wrong.
std::map<std::string, controller::QuotaSpec> quotasInFiles(
    const cli::Setting<std::vector<std::string>>& files);

}  // namespace hearth::program
