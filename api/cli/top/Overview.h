#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "base/Clock.h"

namespace hearth::cli {

/// The claims of the last minute, as far as lists of workspaces showed them: a workspace that ended
/// between two looks was never seen. A value type.
class ClaimWindow {
public:
    /// Adds a list of workspaces and forgets claims older than a minute. Times are the server's.
    void add(const Json& workspaces, WallTime now);
    /// Sets the time of a claim; nullopt: the time is unknown and is not asked for again.
    void measured(const std::string& id, std::optional<double> ms);
    /// The youngest claim whose time is not known yet; empty if there is none.
    std::string unmeasured() const;
    double perSecond() const;
    /// The known times, in order.
    std::vector<double> milliseconds() const;

private:
    struct Claim {
        std::string created_at = {};  ///< RFC 3339 of one form sorts as text
        std::optional<double> ms = {};
        bool complete = false;  ///< the server knows no more of it
    };
    std::map<std::string, Claim> claims_;
};

/// One workspace, opened: the server's answers about it.
struct WorkspaceDetail {
    std::string id = {};        ///< empty: none is open
    std::string sentence = {};  ///< why its claim took long
    Json usage = {};
    Json runs = {};  ///< executions, newest first
    bool loaded = false;
};

/// The server's last answers. Their texts are foreign until cellText(), and may lack any field.
struct Overview {
    std::string url = {};
    std::string version = {};  ///< with the runtime; empty until the server has reported it
    Json pools = {};
    Json workspaces = {};
    bool more_workspaces = false;                     ///< more than the first page holds
    std::map<std::string, std::size_t> running = {};  ///< executions, by the workspace's id
    ClaimWindow claims = {};
    bool measures_next = false;  ///< a claim's time, instead of executions
    Json pressure = {};          ///< of the host, at the youngest claim that reported it
    bool loaded = false;         ///< a look has succeeded at least once
    WorkspaceDetail opened = {};
    std::string failure = {};  ///< why the last look failed; empty: it succeeded
    std::chrono::seconds retry_in{0};
};

/// The value at a path such as "/status/ready"; null if there is none.
const Json& valueAt(const Json& object, const char* path);
std::optional<double> numberAt(const Json& object, const char* path);
/// The number as an integer; 0 if there is none.
std::int64_t countAt(const Json& object, const char* path);
/// The workspace with this id in the list; null if there is none.
const Json& workspaceIn(const Overview& overview, const std::string& id);

// Readers of a server. They block and throw the exceptions of Remote; then the result is partly
// new.

/// Reads pools, workspaces and, by turns, running executions or the time of a claim: three
/// requests, and one more for an empty version.
void read(Remote& remote, Overview& overview, WallTime now);
/// Reads the workspace `detail.id`: three requests, the third only the first time.
void read(Remote& remote, WorkspaceDetail& detail);
void endWorkspace(Remote& remote, const std::string& id);

}  // namespace hearth::cli
