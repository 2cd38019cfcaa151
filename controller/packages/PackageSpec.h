#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::controller {

/// The program of a sandbox that installs and looks up packages.
inline constexpr const char* kPackagesProgram = "/.hearth/packages/packages.py";
/// The report in the last line of `output`; nullopt if there is none.
std::optional<Json> packagesOutcome(std::string output);
/// The fault of a specifier, or nullopt. Only names and versions of an index are valid: no options,
/// no URLs, no paths, no version control (PEP 508; npm's name@range). `manager` is auto, pip or
/// npm.
std::optional<std::string> wrongSpec(const std::string& spec, const std::string& manager);
/// Why what is absent cannot be installed, for each manager ("pip", "npm") that has no way to an
/// index from a workspace of this network; `mirrored` are the kinds that the server mirrors.
std::map<std::string, std::string> shutWays(broker::NetworkMode network,
                                            const std::vector<std::string>& mirrored);
/// Why packages of an index of this kind ("pypi", "npm", "apt") cannot be served by a mirror.
std::string notMirrored(const std::string& kind);
/// The name in a specifier that is right: "numpy" of "numpy[extra]>=2".
std::string packageName(const std::string& spec);

}  // namespace hearth::controller
