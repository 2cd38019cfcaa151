#pragma once

#include <string>

#include "api/cli/remote/Remote.h"
#include "api/cli/top/Overview.h"

namespace hearth::cli {

/// Reads overviews from a server. Blocks; throws what Remote throws. Not thread-safe; the remote
/// must outlive it.
class OverviewReader {
public:
    explicit OverviewReader(Remote& remote);

    /// Pools, workspaces and, by turns, what runs or how long a claim took: three requests. Before
    /// the first one, and after forget(), the server is asked once what it is.
    const Overview& read(WallTime now);
    const Overview& seen() const { return seen_; }
    /// After a failure: it may be another server when it answers again. Numbers are kept.
    void forget() { seen_.version.clear(); }
    /// One workspace: three requests, the third of them only the first time.
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

/// 401 and 403: the token is wrong or lacks a right, and asking again does not help.
bool refusesCaller(const RemoteError& error) noexcept;

}  // namespace hearth::cli
