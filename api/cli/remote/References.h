#pragma once

#include <string>

#include "api/cli/remote/Remote.h"

namespace hearth::cli {

// People name a workspace by its name, and both by the beginning of an id. A whole id costs no
// request. A beginning of an id that fits nothing is given back as it is: the server says that
// there is none. Throw UsageError where it fits several, Error(NotFound) for the name of nothing.

std::string workspaceId(Remote& remote, const std::string& word);
/// Looks at what runs and through the workspaces: ended executions are listed only by these. Throws
/// Error(NotFound) where none fits.
std::string executionId(Remote& remote, const std::string& word);
/// The same for any kind of `hearth get`; a word of another kind is its own id.
std::string idOf(Remote& remote, const std::string& kind, const std::string& word);

/// The id among `candidates`, pairs of id and name, that `word` means; empty if none. Throws
/// UsageError.
std::string chooseId(const std::string& word,
                     const std::vector<std::pair<std::string, std::string>>& candidates);

}  // namespace hearth::cli
