#include "metrics/AuditLog.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Json.h"

namespace hearth::metrics {
namespace {

constexpr std::size_t kLongestText = 256;
constexpr std::ptrdiff_t kNetworkBytes = 8;

Json textOf(const std::string& text) {
    return text.empty() ? Json(nullptr)
                        : Json(toUtf8(std::string_view(text).substr(0, kLongestText)));
}

bool isDenial(int status) {
    return status == 401 || status == 403 || status == 429;
}

/// Returns the address; in IPv6 its network of 64 bits, because one client owns all of that.
std::string networkOf(const std::string& peer) {
    in6_addr address{};
    if (::inet_pton(AF_INET6, peer.c_str(), &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address)) {
        return peer;
    }
    std::fill(std::begin(address.s6_addr) + kNetworkBytes, std::end(address.s6_addr), 0);
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    return std::string(text.data()) + "/64";
}

/// Returns the key that equal denials share: without object and operation, which a caller may
/// choose, such as the name of a tool in a URL.
std::string kindOf(const AuditEntry& denial) {
    std::string kind = std::to_string(denial.status);
    for (const std::string& part : {networkOf(denial.peer), denial.tenant, denial.token,
                                    denial.reason, denial.surface, denial.method, denial.route}) {
        kind.append("\n").append(part);
    }
    return kind;
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

AuditLog::~AuditLog() {
    std::list<Denials> left;
    {
        const MutexLock lock(mutex_);
        by_kind_.clear();
        left.swap(denials_);
    }
    writeCounted(left);
}

std::string AuditLog::line(const AuditEntry& entry, WallTime when, std::uint64_t more) {
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
    out["decision"] = isDenial(entry.status) ? "denied" : entry.status < 400 ? "allowed" : "failed";
    out["status"] = entry.status;
    out["errorCode"] = textOf(entry.error_code);
    if (!entry.reason.empty()) out["reason"] = textOf(entry.reason);
    out["requestId"] = textOf(entry.request_id);
    out["traceId"] = textOf(entry.trace_id);
    if (more > 0) out["more"] = more;
    return dumpJson(out);
}

void AuditLog::record(const AuditEntry& entry) {
    if (!enabled()) return;
    const WallTime when = clock_.wall();
    if (!isDenial(entry.status)) {
        file_.add(line(entry, when) + "\n");
        return;
    }
    const Due due = fold(entry, when);
    writeCounted(due.evicted);
    if (due.now) file_.add(line(entry, when, due.more) + "\n");
}

void AuditLog::writeCounted(const std::list<Denials>& kinds) {
    for (const Denials& each : kinds) {
        if (each.more > 0) file_.add(line(each.last, each.last_at, each.more - 1) + "\n");
    }
}

AuditLog::Due AuditLog::fold(const AuditEntry& denial, WallTime when) {
    constexpr auto kOneIn = std::chrono::seconds(1);
    std::string kind = kindOf(denial);
    const TimePoint now = clock_.now();
    Due due;
    const MutexLock lock(mutex_);
    if (const auto known = by_kind_.find(kind); known != by_kind_.end()) {
        Denials& denials = *known->second;
        if (now - denials.written_at < kOneIn) {
            ++denials.more;
            denials.last = denial;
            denials.last_at = when;
            return due;
        }
        denials.written_at = now;
        due.more = std::exchange(denials.more, 0);
        denials_.splice(denials_.end(), denials_, known->second);
    } else {
        if (denials_.size() >= kMostKinds) {
            by_kind_.erase(denials_.front().kind);
            due.evicted.splice(due.evicted.end(), denials_, denials_.begin());
        }
        Denials& denials = denials_.emplace_back();
        denials.kind = std::move(kind);
        denials.written_at = now;
        by_kind_.emplace(denials.kind, std::prev(denials_.end()));
    }
    due.now = true;
    return due;
}

}  // namespace hearth::metrics
