#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hearth::cli {

enum class Level { Ok, Warn, Fail };

/// The result of one check of `hearth doctor`.
struct Finding {
    Level level = Level::Ok;
    std::string name;     ///< "cgroups"
    std::string message;  ///< the result in words
    std::string fix;      ///< a command or a sentence; empty when all is well
};

inline Finding allRight(std::string name, std::string message) {
    return {Level::Ok, std::move(name), std::move(message), {}};
}

using Findings = std::vector<Finding>;

}  // namespace hearth::cli
