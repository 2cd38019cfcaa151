#pragma once

#include <string>

#include "api/cli/remote/Remote.h"
#include "api/command/Console.h"

namespace hearth::cli {

// Names come from a sandbox: nothing is written outside the folder, and no link in it is followed.
// The first two make the folder, report on `console.err` saved and unsaved files, and throw
// std::system_error if the disk refuses.

/// Saves the files that the execution made or changed and that the server kept.
void saveArtifacts(Remote& remote, const Json& execution, const std::string& folder,
                   const Console& console);
/// Saves its figures and documents, as result-1.png.
void saveResults(const Json& execution, const std::string& folder, const Console& console);
/// Says how many of those there are, and how to save them.
void announceResults(const Json& execution, const Console& console);

}  // namespace hearth::cli
