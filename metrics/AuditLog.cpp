#include "metrics/AuditLog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth::metrics {
namespace {

constexpr std::chrono::seconds kFileLook{1};
constexpr std::chrono::milliseconds kRetry{500};
constexpr std::chrono::milliseconds kLastLines{5'000};
constexpr std::size_t kLongestText = 256;

Json textOf(const std::string& text) {
    return text.empty() ? Json(nullptr)
                        : Json(toUtf8(std::string_view(text).substr(0, kLongestText)));
}

}  // namespace

AuditLog::AuditLog(std::string path, const Clock& clock, Log& log, Metrics& metrics)
    : path_(std::move(path)), clock_(clock), log_(log), metrics_(metrics) {
    if (path_.empty()) return;
    if (!open()) throwErrno("open the audit log " + path_);
    thread_ = std::jthread([this] { write(); });
}

AuditLog::~AuditLog() {
    if (path_.empty()) return;
    flush(kLastLines);
    {
        const MutexLock lock(mutex_);
        stopping_ = true;
    }
    changed_.notifyAll();
}

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
    if (path_.empty()) return;
    {
        const MutexLock lock(mutex_);
        std::uint64_t more = 0;
        if (folded(entry, more)) return;
        if (queue_.size() >= kQueue) {
            metrics_.audit("lost");
            return;
        }
        queue_.push_back(line(entry, clock_.wall(), more) + "\n");
    }
    changed_.notifyAll();
}

void AuditLog::reopen() {
    {
        const MutexLock lock(mutex_);
        reopen_ = true;
    }
    changed_.notifyAll();
}

bool AuditLog::flush(std::chrono::milliseconds patience) {
    const MutexLock lock(mutex_);
    return changed_.waitFor(mutex_, patience,
                            [this]() HEARTH_REQUIRES(mutex_) { return queue_.empty() && !busy_; });
}

void AuditLog::write() {
    UniqueMutexLock lock(mutex_);
    while (true) {
        changed_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) {
            return stopping_ || reopen_ || !queue_.empty();
        });
        if (stopping_) return;
        const bool anew = std::exchange(reopen_, false);
        if (queue_.empty()) {
            lock.unlock();
            if (anew && !open()) failed("open", errno);
            lock.lock();
            continue;
        }
        const std::string text = queue_.front();
        busy_ = true;
        lock.unlock();
        const bool written = (!anew || open()) && append(text);
        if (!written) failed(file_ ? "write" : "open", errno);
        lock.lock();
        busy_ = false;
        if (written) {
            queue_.pop_front();
            if (queue_.empty()) changed_.notifyAll();
        } else {
            changed_.waitFor(mutex_, kRetry,
                             [this]() HEARTH_REQUIRES(mutex_) { return stopping_; });
        }
    }
}

bool AuditLog::open() {
    Fd opened(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!opened) return false;
    file_ = std::move(opened);
    looked_at_ = clock_.now();
    return true;
}

bool AuditLog::moved() const {
    struct stat ours {};
    struct stat there {};
    if (::fstat(file_.get(), &ours) != 0) return true;
    if (::stat(path_.c_str(), &there) != 0) return errno == ENOENT;
    return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

bool AuditLog::append(const std::string& text) {
    if (clock_.now() - looked_at_ >= kFileLook || !file_) {
        looked_at_ = clock_.now();
        // Where the new one cannot be opened the old one still takes lines: none is lost.
        if ((!file_ || moved()) && !open()) {
            if (!file_) return false;
            failed("open", errno);
        }
    }
    // A line that was written in part is ended first, so that this one is whole.
    const std::string whole = (torn_ ? "\n" : "") + text;
    std::size_t done = 0;
    while (done < whole.size()) {
        const ssize_t written = ::write(file_.get(), whole.data() + done, whole.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            torn_ = torn_ || done > 0;
            return false;
        }
        done += static_cast<std::size_t>(written);
    }
    torn_ = false;
    metrics_.audit("written");
    if (failing_) log_.info("audit.recovered", {{"file", path_}});
    failing_ = false;
    return true;
}

void AuditLog::failed(const char* what, int error) {
    metrics_.audit("failed");
    if (std::exchange(failing_, true)) return;
    log_.error(
        "audit.failed",
        {{"file", path_}, {"what", what}, {"error", std::generic_category().message(error)}});
}

}  // namespace hearth::metrics
