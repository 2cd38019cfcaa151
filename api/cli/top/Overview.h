#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/cli/top/ClaimWindow.h"
#include "base/Clock.h"
#include "base/Json.h"
#include "base/host/HostPressure.h"

namespace hearth::cli {

// The result of one look at a server. Texts are cellText(), except ids: requests use them.

/// The fields of a pool that the screen shows. Counts are numbers of sandboxes.
struct PoolFacts {
    std::string name;
    std::string state;  ///< "Ready", "Degraded"
    std::string why;    ///< one line; may be empty
    std::int64_t ready = 0;
    std::int64_t claimed = 0;
    std::int64_t creating = 0;
    std::int64_t target = 0;
    std::int64_t waiting = 0;  ///< claims in line
    double miss_rate = 0;      ///< share of recent claims that found no ready sandbox, 0 to 1
};

struct WorkspaceFacts {
    std::string id;
    std::string name;
    std::string tenant;
    std::string pool;
    std::string phase;
    std::string created_at;       ///< RFC 3339
    std::string idle_expires_at;  ///< empty while something runs, or if it never ends idle
    std::optional<double> claim_ms = {};
};

struct Overview {
    std::string url;
    std::string version = {};  ///< with the runtime; empty until the server has reported it
    std::vector<PoolFacts> pools = {};
    std::vector<WorkspaceFacts> workspaces = {};
    bool more_workspaces = false;                     ///< more than the first page holds
    std::map<std::string, std::size_t> running = {};  ///< executions, by the workspace's id
    ClaimFigures claims = {};
    std::optional<HostPressure> pressure = {};  ///< at the youngest claim that reported it
    bool loaded = false;                        ///< a look has succeeded at least once
};

/// One workspace, opened.
struct WorkspaceDetail {
    std::string id;
    std::string sentence = {};  ///< why its claim took long
    /// Its present use, as pairs of a name and a value.
    std::vector<std::pair<std::string, std::string>> usage = {};
    struct Run {
        std::string id;
        std::string status;
        std::string language;
        std::string started_at;  ///< RFC 3339
        std::optional<double> took_ms;
        std::string exit_code;
    };
    std::vector<Run> runs = {};  ///< newest first
    bool loaded = false;
};

// Readers of answers. All accept fields that an older or newer server leaves out; they need a
// Utf8Locale.
std::vector<PoolFacts> poolFacts(const Json& list);
std::vector<WorkspaceFacts> workspaceFacts(const Json& list);
std::map<std::string, std::size_t> runningByWorkspace(const Json& list);
std::optional<HostPressure> pressureOf(const Json& timeline);
std::vector<WorkspaceDetail::Run> runFacts(const Json& list);
std::vector<std::pair<std::string, std::string>> usageFacts(const Json& usage);

}  // namespace hearth::cli
