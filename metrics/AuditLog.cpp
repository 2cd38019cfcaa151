#include "metrics/AuditLog.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Json.h"

namespace hearth::metrics {
namespace {

constexpr std::size_t kLongestText = 256;

Json textOf(const std::string& text) {
    return text.empty() ? Json(nullptr)
                        : Json(toUtf8(std::string_view(text).substr(0, kLongestText)));
}

}  // namespace

AuditLog::AuditLog(std::string path, const Clock& clock, Log& log, Metrics& metrics)
    : clock_(clock),
      file_({.path = std::move(path),
             .mode = kMode,
             .name = "the audit log",
             .event = "audit",
             .count =
                 [&metrics](LineFate fate) {
                     constexpr std::array kWords{"written", "failed", "lost"};
                     metrics.audit(kWords.at(static_cast<std::size_t>(fate)));
                 }},
            clock, log) {}

std::string AuditLog::line(const AuditEntry& entry, WallTime when, std::uint64_t more) {
    const bool denied = entry.status == 401 || entry.status == 403 || entry.status == 429;
    Json out = Json::object();
    out["time"] = formatRfc3339(when);
    out["surface"] = entry.surface;
    out["operation"] = textOf(entry.operation);
    out["method"] = textOf(entry.method);
    out["route"] = textOf(entry.route);
    out["resource"] = textOf(entry.resource);
    out["tenant"] = textOf(entry.tenant);
    out["role"] = textOf(entry.role);
    out["token"] = textOf(entry.token);
    out["peer"] = textOf(entry.peer);
    out["decision"] = denied ? "denied" : entry.status < 400 ? "allowed" : "failed";
    out["status"] = entry.status;
    out["errorCode"] = textOf(entry.error_code);
    if (!entry.reason.empty()) out["reason"] = textOf(entry.reason);
    out["requestId"] = textOf(entry.request_id);
    out["traceId"] = textOf(entry.trace_id);
    if (more > 0) out["more"] = more;
    return dumpJson(out);
}

bool AuditLog::folded(const AuditEntry& entry, std::uint64_t& more) {
    constexpr std::size_t kMostKinds = 1'000;
    constexpr auto kOneIn = std::chrono::seconds(1);
    if (entry.status != 401 && entry.status != 429) return false;
    const MutexLock lock(mutex_);
    if (denials_.size() >= kMostKinds) denials_.clear();
    const auto [at, first] =
        denials_.try_emplace(std::to_string(entry.status) + " " + entry.peer + " " + entry.token +
                             " " + entry.reason + " " + entry.route);
    Denials& denials = at->second;
    const TimePoint now = clock_.now();
    if (!first && now - denials.written_at < kOneIn) {
        ++denials.more;
        return true;
    }
    denials.written_at = now;
    more = std::exchange(denials.more, 0);
    return false;
}

void AuditLog::record(const AuditEntry& entry) {
    std::uint64_t more = 0;
    if (!enabled() || folded(entry, more)) return;
    file_.add(line(entry, clock_.wall(), more) + "\n");
}

}  // namespace hearth::metrics
