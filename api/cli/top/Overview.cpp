#include "api/cli/top/Overview.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/cli/remote/Tables.h"
#include "api/cli/top/ScreenText.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

const Json& child(const Json& object, const char* key) {
    static const Json nothing;
    if (!object.is_object()) return nothing;
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
}

std::optional<double> numberAt(const Json& object, const char* key) {
    const Json& value = child(object, key);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::int64_t countAt(const Json& object, const char* key) {
    const double value = numberAt(object, key).value_or(0);
    return std::isfinite(value) && std::abs(value) < 1e15 ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace

std::vector<PoolFacts> poolFacts(const Json& list) {
    std::vector<PoolFacts> pools;
    for (const Json& item : child(list, "items")) {
        const Json& status = child(item, "status");
        pools.push_back({.name = cellText(textAt(child(item, "metadata"), "name")),
                         .state = cellText(poolStatus(item)),
                         .why = cellText(poolWhy(item)),
                         .ready = countAt(status, "ready"),
                         .claimed = countAt(status, "claimed"),
                         .creating = countAt(status, "creating"),
                         .target = countAt(status, "desired"),
                         .waiting = countAt(status, "waiting"),
                         .miss_rate = numberAt(status, "missRate").value_or(0)});
    }
    return pools;
}

std::vector<WorkspaceFacts> workspaceFacts(const Json& list) {
    std::vector<WorkspaceFacts> workspaces;
    for (const Json& item : child(list, "items")) {
        workspaces.push_back({.id = textAt(item, "id"),
                              .name = cellText(textAt(item, "name")),
                              .tenant = cellText(textAt(item, "tenant")),
                              .pool = cellText(textAt(item, "pool")),
                              .phase = cellText(textAt(item, "phase")),
                              .created_at = textAt(item, "createdAt"),
                              .idle_expires_at = textAt(item, "idleExpiresAt"),
                              .claim_ms = numberAt(child(item, "claim"), "totalMs")});
    }
    return workspaces;
}

std::map<std::string, std::size_t> runningByWorkspace(const Json& list) {
    std::map<std::string, std::size_t> running;
    for (const Json& item : child(list, "items")) ++running[textAt(item, "workspaceId")];
    return running;
}

std::optional<HostPressure> pressureOf(const Json& timeline) {
    const Json& then = child(timeline, "pressureThen");
    const auto cpu = numberAt(then, "cpu");
    if (!cpu) return std::nullopt;
    return HostPressure{*cpu, numberAt(then, "memory").value_or(0),
                        numberAt(then, "io").value_or(0)};
}

std::vector<WorkspaceDetail::Run> runFacts(const Json& list) {
    std::vector<WorkspaceDetail::Run> runs;
    for (const Json& item : child(list, "items")) {
        const Json& code = child(item, "exitCode");
        const std::string language = textAt(item, "language");
        runs.push_back({.id = cellText(textAt(item, "id")),
                        .status = cellText(textAt(item, "status")),
                        .language = language.empty() ? "command" : cellText(language),
                        .started_at = textAt(item, "startedAt"),
                        .took_ms = numberAt(item, "durationMs"),
                        .exit_code = code.is_number() ? dumpJson(code) : "-"});
    }
    return runs;
}

std::vector<std::pair<std::string, std::string>> usageFacts(const Json& usage) {
    char cpu[48];
    std::snprintf(cpu, sizeof(cpu), "%.1f s", numberAt(usage, "cpuMs").value_or(0) / 1000);
    const auto bytes = [&](const char* key) {
        return formatSize(numberAt(usage, key).value_or(0));
    };
    return {{"cpu so far", cpu},
            {"memory", bytes("memoryBytes") + " (at most " + bytes("memoryPeakBytes") + ")"},
            {"disk", bytes("diskBytes") + " of " + bytes("diskLimitBytes")},
            {"processes", std::to_string(countAt(usage, "processes"))}};
}

}  // namespace hearth::cli
