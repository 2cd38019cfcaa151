#include "api/cli/top/OverviewReader.h"

#include <nlohmann/json.hpp>

#include "api/cli/top/ScreenText.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

std::string workspaceTarget(const std::string& id, const char* rest = "") {
    return "/v1/workspaces/" + percentEncode(id) + rest;
}

}  // namespace

bool refusesCaller(const RemoteError& error) noexcept {
    return error.status() == 401 || error.status() == 403;
}

OverviewReader::OverviewReader(Remote& remote) : remote_(remote) {
    const Utf8Locale utf8;
    seen_.url = cellText(remote.url());
}

const Overview& OverviewReader::read(WallTime now) {
    const Utf8Locale utf8;
    if (seen_.version.empty()) greet();
    std::vector<PoolFacts> pools = poolFacts(remote_.get("/v1/pools"));
    const Json list = remote_.get("/v1/workspaces");
    seen_.pools = std::move(pools);
    seen_.workspaces = workspaceFacts(list);
    seen_.more_workspaces = !textAt(list, "nextCursor").empty();
    claims_.begin(now);
    for (const WorkspaceFacts& one : seen_.workspaces) {
        claims_.saw(one.id, one.created_at, one.claim_ms);
    }
    const std::string unmeasured = measure_next_ ? claims_.unmeasured() : "";
    measure_next_ = unmeasured.empty();
    if (unmeasured.empty()) {
        seen_.running = runningByWorkspace(remote_.get("/v1/executions"));
    } else {
        measure(unmeasured);
    }
    seen_.claims = claims_.figures();
    seen_.loaded = true;
    return seen_;
}

void OverviewReader::greet() {
    const Json told = remote_.get("/v1/capabilities");
    seen_.version = cellText("hearth " + textAt(told, "version") + ", " + textAt(told, "runtime"));
}

void OverviewReader::measure(const std::string& workspace) {
    try {
        const Json timeline = remote_.get(workspaceTarget(workspace, "/timeline"));
        claims_.measured(workspace, timeline.is_object()
                                        ? std::optional(timeline.value("totalMs", 0.0))
                                        : std::nullopt);
        if (const auto pressure = pressureOf(timeline)) seen_.pressure = pressure;
    } catch (const RemoteError& e) {
        if (e.status() == 401) throw;
        claims_.measured(workspace, std::nullopt);  // it has ended, or the server is an older one
    }
}

void OverviewReader::open(WorkspaceDetail& detail) {
    const Utf8Locale utf8;
    detail.runs = runFacts(remote_.get(workspaceTarget(detail.id, "/executions?limit=50")));
    detail.usage = usageFacts(remote_.get(workspaceTarget(detail.id, "/usage")));
    if (!detail.loaded) {
        try {
            detail.sentence =
                cellText(textAt(remote_.get(workspaceTarget(detail.id, "/timeline")), "sentence"));
        } catch (const RemoteError& e) {
            if (e.status() != 404) throw;  // an older server has no such route
        }
    }
    detail.loaded = true;
}

void OverviewReader::end(const std::string& workspace) {
    remote_.send("DELETE", workspaceTarget(workspace));
}

}  // namespace hearth::cli
