#pragma once

#include <memory>
#include <string>

#include "controller/contract/Executions.h"
#include "controller/store/Journal.h"

namespace hearth::controller {

class ArtifactStore;

// An ended execution as the journal has it. Little output stands in its record; more of it stands
// apart in pieces, which are read when they are asked for, so that an execution somebody looks at
// costs some ten KiB of memory however much it has printed.

/// Whether output and results of `view` stand apart from its record.
bool keepsApart(const ExecutionView& view);
/// The view without output and results.
std::string executionDocument(const ExecutionView& view);
/// Output in the order it came, then the results, for the record.
std::string packedOutput(const Execution& execution);
/// The same in pieces.
void putApart(const Execution& execution, const Journal::PutPiece& put);
/// Reads what the four above have made; `journal` must outlive it. Thread-safe. What has been
/// removed from the journal meanwhile is missing in what it reads, like output that was dropped.
/// Artifacts that `store`, if there is one, has no longer are told as gone.
std::shared_ptr<Execution> storedExecution(const ExecutionRecord& record, Journal& journal,
                                           const ArtifactStore* store = nullptr);

}  // namespace hearth::controller
