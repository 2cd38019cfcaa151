#pragma once

#include <memory>
#include <string>

#include "controller/contract/Executions.h"
#include "controller/journal/Journal.h"

namespace hearth::controller {

class ArtifactStore;

// An ended execution from the journal. Short output is in its record; longer output is kept apart
// in pieces, which are read on demand, so that a viewed execution costs some ten KiB of memory
// however much it has printed.

/// Returns whether output and results of `view` are kept apart from its record.
bool keepsApart(const ExecutionView& view);
/// Returns the view without output and results.
std::string executionDocument(const ExecutionView& view);
/// Returns the output in the order it came, then the results, for the record.
std::string packedOutput(const Execution& execution);
/// Passes the same to `put` in pieces.
void putApart(const Execution& execution, const Journal::PutPiece& put);
/// Reads the data that the functions above made; `journal` must outlive it. Thread-safe. Output
/// removed from the journal meanwhile is missing, like dropped output. Artifacts that `store`, if
/// there is one, no longer has are reported as gone.
std::shared_ptr<Execution> storedExecution(const ExecutionRecord& record, Journal& journal,
                                           const ArtifactStore* store = nullptr);

}  // namespace hearth::controller
