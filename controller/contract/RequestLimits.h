#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "controller/contract/Executions.h"
#include "controller/contract/Workspaces.h"

namespace hearth::controller {

/// The most labels that one workspace may have.
inline constexpr std::size_t kMostLabels = 64;
/// The share of an agent's 64 KiB for labels and note that labels, name and sealed part may take.
inline constexpr std::size_t kMostTold = 56U << 10U;
/// Escaping makes a JSON text at most this many times as long.
inline constexpr std::size_t kMostEscaped = 6;

/// Checks for [A-Za-z_][A-Za-z0-9_]*, up to 255 bytes.
bool isEnvName(std::string_view text);
/// Checks for at most 32 KiB without NUL.
bool isEnvValue(std::string_view text);
/// Checks for 1 to 253 bytes without control characters.
bool isDisplayName(std::string_view text);

/// Checks a claim's limits before it costs a sandbox: REST checks by its schema, other surfaces by
/// this function. Throws Error(InvalidArgument) with the fields, named as in REST.
void checkRequest(const WorkspaceRequest& request);
/// Does the same for an execution: an agent would refuse it only after a sandbox was claimed.
/// Throws Error(InvalidArgument) with the field, and Error(PayloadTooLarge).
void checkRequest(const ExecutionRequest& request);
/// Throws Error(InvalidArgument) if there are more labels than one workspace may have.
void checkLabels(const std::map<std::string, std::string>& labels);

}  // namespace hearth::controller
