#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "controller/contract/Executions.h"
#include "controller/contract/Workspaces.h"

namespace hearth::controller {

/// Labels of one workspace.
inline constexpr std::size_t kMostLabels = 64;
/// Of the 64 KiB that an agent keeps of labels and note; the rest of the note is small.
inline constexpr std::size_t kMostTold = 56U << 10U;
/// Escaping grows a text of JSON at most so many times.
inline constexpr std::size_t kMostEscaped = 6;

/// [A-Za-z_][A-Za-z0-9_]*, up to 255.
bool isEnvName(std::string_view text);
/// Up to 32 KiB without NUL.
bool isEnvValue(std::string_view text);
/// 1 to 253 bytes without control characters.
bool isDisplayName(std::string_view text);

/// The limits of a claim, checked before it costs a sandbox: REST checks by its schema, other
/// surfaces by this. Throws Error(InvalidArgument) with the fields, as REST names them.
void checkRequest(const WorkspaceRequest& request);
/// The same of an execution: an agent would refuse it, in a sandbox that was claimed for it. Throws
/// Error(InvalidArgument) with the field, and Error(PayloadTooLarge).
void checkRequest(const ExecutionRequest& request);
/// Throws Error(InvalidArgument) if they are more than one workspace may have.
void checkLabels(const std::map<std::string, std::string>& labels);

}  // namespace hearth::controller
