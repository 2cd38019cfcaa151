#pragma once

#include <string>

#include "api/cli/remote/Remote.h"
#include "api/cli/top/Overview.h"

namespace hearth::cli {

/// Reads overviews from a server. Blocks; throws the exceptions of Remote. Not thread-safe; the
/// remote must outlive it.
class OverviewReader {
public:
    explicit OverviewReader(Remote& remote);

    /// Reads pools, workspaces and, by turns, running executions or the time of a claim: three
    /// requests. Before the first one, and after forget(), it asks the server once for its version.
    const Overview& read(WallTime now);
    const Overview& seen() const { return seen_; }
    /// Call after a failure: a different server may answer next. Numbers are kept.
    void forget() { seen_.version.clear(); }
    /// Reads one workspace: three requests, the third only the first time.
    void open(WorkspaceDetail& detail);
    void end(const std::string& workspace);

private:
    void greet();
    void measure(const std::string& workspace);

    Remote& remote_;
    Overview seen_;
    ClaimWindow claims_;
    bool measure_next_ = false;
};

/// True for 401 and 403: the token is wrong or lacks a right, and asking again does not help.
bool refusesCaller(const RemoteError& error) noexcept;

}  // namespace hearth::cli
