#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "base/Texts.h"
#include "controller/egress/policy/IndexKind.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::controller {

/// The package manager of a request. Auto: chosen by the form of the names.
enum class PackageManager : std::uint8_t { Auto, Pip, Npm };
inline constexpr Texts<PackageManager, 3> kPackageManagers{{"auto", "pip", "npm"}};

/// The program in a sandbox that installs and searches packages.
inline constexpr const char* kPackagesProgram = "/.hearth/packages/packages.py";
/// The program's report, in the last line of `output`; nullopt if there is none.
std::optional<Json> packagesOutcome(std::string output);
/// The usual `most` of a text in a report, in bytes.
inline constexpr std::size_t kMostOutcomeText = 2'000;
/// The text at `key` of a part of a report, at most `most` bytes of it, as valid UTF-8; empty if
/// there is none. A program of the tenant may have written it.
std::string outcomeText(const Json& object, const char* key, std::size_t most = kMostOutcomeText);
/// The fault of a specifier, or nullopt. Only names and versions in an index are valid: no options,
/// no URLs, no paths, no version control (PEP 508; npm's name@range).
std::optional<std::string> wrongSpec(const std::string& spec, PackageManager manager);
/// Why missing packages cannot be installed: the reason for each manager (by its text) that has no
/// way to an index with this network. `mirrored`: the kinds that the server mirrors.
std::map<std::string, std::string> shutWays(egress::NetworkMode network,
                                            const std::vector<egress::IndexKind>& mirrored);
/// The reason why the mirror cannot serve packages of this kind of index.
std::string notMirrored(egress::IndexKind kind);
/// The name in a valid specifier: "numpy" of "numpy[extra]>=2".
std::string packageName(const std::string& spec);

}  // namespace hearth::controller
