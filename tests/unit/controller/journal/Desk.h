#pragma once

#include <optional>
#include <string>

#include "controller/journal/Journal.h"
#include "tests/support/Support.h"

namespace hearth::controller::test {

/// What a journal stands on.
struct Desk {
    hearth::test::TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    const std::string path = dir.file("hearth.db");
};

/// A journal, and what it stands on.
struct JournalDesk : Desk {
    Journal journal{path, clock, log};
};

/// An open workspace, as the journal keeps it.
inline WorkspaceRecord workspaceRecord(const std::string& n) {
    return {"ws_" + n, "t", "p", "sb_" + n, "cl_" + n, "f", "name", 1000, std::nullopt, ""};
}

}  // namespace hearth::controller::test
