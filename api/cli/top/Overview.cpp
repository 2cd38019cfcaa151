#include "api/cli/top/Overview.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kWindow{60};

const Json kNothing;

std::string workspaceTarget(const std::string& id, const char* rest = "") {
    return "/v1/workspaces/" + percentEncode(id) + rest;
}

void measure(Remote& remote, Overview& overview, const std::string& workspace) {
    try {
        const Json timeline = remote.get(workspaceTarget(workspace, "/timeline"));
        overview.claims.measured(workspace, numberAt(timeline, "/totalMs"));
        const Json& pressure = valueAt(timeline, "/pressureThen");
        if (numberAt(pressure, "/cpu")) overview.pressure = pressure;
    } catch (const RemoteError& e) {
        if (e.status() == 401) throw;
        overview.claims.measured(workspace, {});  // it has ended, or its record waits
    }
}

}  // namespace

void ClaimWindow::add(const Json& workspaces, WallTime now) {
    for (const Json& one : workspaces) {
        Claim& claim = claims_[textAt(one, "id")];
        claim.created_at = textAt(one, "createdAt");
        if (const auto ms = numberAt(one, "/claim/totalMs")) claim.ms = ms;
    }
    const std::string oldest = formatRfc3339(now - kWindow);
    std::erase_if(claims_, [&](const auto& one) { return one.second.created_at < oldest; });
}

void ClaimWindow::measured(const std::string& id, std::optional<double> ms) {
    const auto found = claims_.find(id);
    if (found == claims_.end()) return;
    found->second.complete = true;
    if (ms) found->second.ms = ms;
}

std::string ClaimWindow::unmeasured() const {
    std::string id;
    std::string youngest;
    for (const auto& [name, claim] : claims_) {
        if (claim.ms || claim.complete || claim.created_at < youngest) continue;
        id = name;
        youngest = claim.created_at;
    }
    return id;
}

double ClaimWindow::perSecond() const {
    return static_cast<double>(claims_.size()) / static_cast<double>(kWindow.count());
}

std::vector<double> ClaimWindow::milliseconds() const {
    std::vector<double> times;
    for (const auto& [id, claim] : claims_) {
        if (claim.ms) times.push_back(*claim.ms);
    }
    std::ranges::sort(times);
    return times;
}

const Json& valueAt(const Json& object, const char* path) {
    const Json::json_pointer pointer(path);
    return object.contains(pointer) ? object.at(pointer) : kNothing;
}

std::optional<double> numberAt(const Json& object, const char* path) {
    const Json& value = valueAt(object, path);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::int64_t countAt(const Json& object, const char* path) {
    const double value = numberAt(object, path).value_or(0);
    return std::isfinite(value) && std::abs(value) < 1e15 ? static_cast<std::int64_t>(value) : 0;
}

const Json& workspaceIn(const Overview& overview, const std::string& id) {
    for (const Json& one : overview.workspaces) {
        if (textAt(one, "id") == id) return one;
    }
    return kNothing;
}

void read(Remote& remote, Overview& overview, WallTime now) {
    if (overview.version.empty()) {
        const Json server = remote.get("/v1/capabilities");
        overview.version = "hearth " + textAt(server, "version") + ", " + textAt(server, "runtime");
    }
    overview.pools = valueAt(remote.get("/v1/pools"), "/items");
    const Json list = remote.get("/v1/workspaces");
    overview.workspaces = valueAt(list, "/items");
    overview.more_workspaces = !textAt(list, "nextCursor").empty();
    overview.claims.add(overview.workspaces, now);
    const std::string claim = overview.measures_next ? overview.claims.unmeasured() : "";
    overview.measures_next = claim.empty();
    if (claim.empty()) {
        const Json executions = remote.get("/v1/executions");
        overview.running.clear();
        for (const Json& one : valueAt(executions, "/items")) {
            ++overview.running[textAt(one, "workspaceId")];
        }
    } else {
        measure(remote, overview, claim);
    }
    overview.loaded = true;
}

void read(Remote& remote, WorkspaceDetail& detail) {
    detail.runs = valueAt(remote.get(workspaceTarget(detail.id, "/executions?limit=50")), "/items");
    detail.usage = remote.get(workspaceTarget(detail.id, "/usage"));
    if (!detail.loaded) {
        try {
            detail.sentence =
                textAt(remote.get(workspaceTarget(detail.id, "/timeline")), "sentence");
        } catch (const RemoteError& e) {
            if (e.status() != 404) throw;  // its record may wait for a full disk
        }
    }
    detail.loaded = true;
}

void endWorkspace(Remote& remote, const std::string& id) {
    remote.send("DELETE", workspaceTarget(id));
}

}  // namespace hearth::cli
