#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/command/Command.h"

namespace hearth::cli {

/// One possible word at the cursor. ":file" and ":dir" stand for the names of local files and
/// directories, which the shell knows better.
struct Candidate {
    std::string word;
    std::string about;  ///< a few words; may be empty
};

/// Returns the server's names of one kind ("@workspace", "@pool", "@execution", "@remote"); for
/// @remote `word` is the typed text. Empty if there are none.
using Lookup =
    std::function<std::vector<Candidate>(const std::string& kind, const std::string& word)>;

/// The possible next words. `words` are the words after the program's name; the last one, which may
/// be empty, is completed. Parser and help read the same table.
std::vector<Candidate> completions(const std::vector<Command>& commands,
                                   const std::vector<std::string>& words, const Lookup& lookup);

/// Asks the server, for at most a second; a failure gives no names.
Lookup serverLookup(const std::vector<std::string>& words, const Environment& environment);

/// The script that makes bash, zsh or fish call `hearth __complete`. Throws UsageError for others.
std::string completionScript(const std::string& shell);

Command makeCompletion();

}  // namespace hearth::cli
