#pragma once

#include <string>

#include "api/cli/remote/Remote.h"

namespace hearth::cli {

// People write a workspace's name, or the beginning of an id of either kind. A whole id costs no
// request. A beginning of an id that fits nothing is returned unchanged: the server reports that
// there is none. Throw UsageError if it fits several, Error(NotFound) for an unknown name.

std::string workspaceId(Remote& remote, const std::string& word);
/// Searches running executions and then the workspaces, because only these list ended executions.
/// Throws Error(NotFound) if none fits.
std::string executionId(Remote& remote, const std::string& word);
/// The same for any kind of `hearth get`; for other kinds the word is the id.
std::string idOf(Remote& remote, const std::string& kind, const std::string& word);

/// Returns the id among `candidates`, pairs of id and name, that `word` means; empty if none.
/// Throws UsageError.
std::string chooseId(const std::string& word,
                     const std::vector<std::pair<std::string, std::string>>& candidates);

}  // namespace hearth::cli
