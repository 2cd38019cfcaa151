#pragma once

#include <optional>
#include <string>

#include "controller/journal/Journal.h"
#include "tests/support/Support.h"

namespace hearth::controller::test {

/// A data directory, a clock and a log: everything that a journal needs.
struct Desk {
    hearth::test::TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    const std::string path = dir.file("hearth.db");
};

/// A desk with its journal.
struct JournalDesk : Desk {
    Journal journal{path, clock, log};
};

/// Returns the journal's record of an open workspace.
inline WorkspaceRecord workspaceRecord(const std::string& n) {
    return {"ws_" + n, "t", "p", "sb_" + n, "cl_" + n, "f", "name", 1000, std::nullopt, ""};
}

}  // namespace hearth::controller::test
