#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/PoolSpec.h"
#include "controller/Services.h"

namespace hearth::program {

// What a data directory holds, for commands that work without a server.

std::unique_ptr<controller::Tokens> offlineTokens(const std::string& data_dir);
/// The pools as its server keeps them; none if no server ever had the directory.
std::vector<controller::Pool> declaredPools(const std::string& data_dir);

}  // namespace hearth::program
