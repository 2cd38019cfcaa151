#include "api/mcp/http/ReplayStreams.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

#include "base/Ids.h"

namespace hearth::mcp {

/// The events of one answer, and the connection that takes them now. Thread-safe.
class ReplayLog {
public:
    ReplayLog(std::string id, std::string tenant, std::string session, const Clock& clock)
        : id_(std::move(id)),
          tenant_(std::move(tenant)),
          session_(std::move(session)),
          clock_(clock) {}

    const std::string& tenant() const { return tenant_; }
    const std::string& session() const { return session_; }

    void begin(std::shared_ptr<api::Stream> stream, bool prime) {
        const MutexLock lock(mutex_);
        reader_ = stream;
        stream_ = std::move(stream);
        if (prime) stream_->send("id: " + id_ + "_0\nretry: 500\ndata: \n\n");
    }

    void send(const Json& message) {
        const MutexLock lock(mutex_);
        const std::string event =
            "id: " + id_ + "_" + std::to_string(++last_) + "\n" + sseEvent(message);
        bytes_ += event.size();
        events_.emplace_back(last_, event);
        while (bytes_ > kMaxBytes && events_.size() > 1) {
            bytes_ -= events_.front().second.size();
            events_.pop_front();
        }
        if (stream_) stream_->send(event);
    }

    void attach(std::shared_ptr<api::Stream> stream, std::uint64_t after) {
        const MutexLock lock(mutex_);
        // Only one reader, so that events an earlier reader has not taken are not kept twice.
        if (const auto earlier = reader_.lock()) earlier->cut();
        stream_.reset();
        reader_ = stream;
        for (const auto& [number, event] : events_) {
            if (number > after) stream->send(event);
        }
        if (ended_at_) {
            stream->finish();
        } else {
            stream_ = std::move(stream);
        }
    }

    void hangUp() {
        const MutexLock lock(mutex_);
        if (stream_) stream_->finish();
        stream_.reset();
    }

    void end() {
        const MutexLock lock(mutex_);
        ended_at_ = clock_.now();
        if (stream_) stream_->finish();
        stream_.reset();
    }

    std::optional<TimePoint> endedAt() const {
        const MutexLock lock(mutex_);
        return ended_at_;
    }
    std::size_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t kMaxBytes = 8U << 20U;

    const std::string id_;
    const std::string tenant_;
    const std::string session_;
    const Clock& clock_;
    mutable Mutex mutex_;
    std::shared_ptr<api::Stream> stream_ HEARTH_GUARDED_BY(mutex_);  ///< null without a listener
    std::weak_ptr<api::Stream> reader_ HEARTH_GUARDED_BY(mutex_);    ///< the newest reader
    std::deque<std::pair<std::uint64_t, std::string>> events_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t last_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::optional<TimePoint> ended_at_ HEARTH_GUARDED_BY(mutex_);
    std::atomic<std::size_t> bytes_{0};
};

namespace {

/// The sink that the calls of an answer hold.
class ReplayOutlet final : public MessageSink {
public:
    explicit ReplayOutlet(std::shared_ptr<ReplayLog> log) : log_(std::move(log)) {}
    ~ReplayOutlet() override { log_->end(); }

    void send(const Json& message) override { log_->send(message); }
    bool closed() const override { return false; }  // a client may fetch it until it is dropped
    std::shared_ptr<void> onClosed(std::function<void()>) override { return {}; }
    void hangUp() override { log_->hangUp(); }

private:
    const std::shared_ptr<ReplayLog> log_;
};

}  // namespace

std::shared_ptr<MessageSink> ReplayStreams::open(const std::string& tenant,
                                                 const std::string& session,
                                                 std::shared_ptr<api::Stream> stream, bool prime) {
    const std::string id = newId("");
    const auto log = std::make_shared<ReplayLog>(id, tenant, session, clock_);
    log->begin(std::move(stream), prime);
    const MutexLock lock(mutex_);
    logs_.emplace(id, log);
    order_.push_back(id);
    collect(tenant);
    return std::make_shared<ReplayOutlet>(log);
}

void ReplayStreams::collect(const std::string& tenant) {
    std::size_t all = 0;
    std::size_t bytes = 0;
    std::size_t count = 0;
    for (const auto& [id, log] : logs_) {
        all += log->bytes();
        if (log->tenant() != tenant) continue;
        bytes += log->bytes();
        ++count;
    }
    // Oldest first: every expired log, and this tenant's logs beyond its limits; other tenants'
    // only if all together exceed theirs.
    std::erase_if(order_, [&](const std::string& id) HEARTH_REQUIRES(mutex_) {
        const auto found = logs_.find(id);
        const ReplayLog& log = *found->second;
        const bool own = log.tenant() == tenant;
        const std::optional<TimePoint> ended = log.endedAt();
        const bool late = ended && clock_.now() - *ended > kKept;
        const bool much = (own && (count > kMaxLogs || bytes > kMaxBytes)) || all > kMaxBytesOfAll;
        if (!late && !much) return false;
        const std::size_t size = log.bytes();  // may have grown since it was counted
        all -= std::min(all, size);
        if (own) {
            bytes -= std::min(bytes, size);
            --count;
        }
        logs_.erase(found);
        return true;
    });
}

ReplayStreams::Place ReplayStreams::find(const std::string& session,
                                         std::string_view last_event_id) {
    const std::size_t mark = last_event_id.rfind('_');
    if (mark == std::string_view::npos) return {};
    Place place;
    const std::string_view number = last_event_id.substr(mark + 1);
    const auto [end, problem] =
        std::from_chars(number.data(), number.data() + number.size(), place.event);
    if (problem != std::errc() || end != number.data() + number.size()) return {};
    const MutexLock lock(mutex_);
    const auto found = logs_.find(last_event_id.substr(0, mark));
    if (found == logs_.end() || found->second->session() != session) return {};
    place.log = found->second;
    return place;
}

bool ReplayStreams::knows(const std::string& session, std::string_view last_event_id) {
    return find(session, last_event_id).log != nullptr;
}

void ReplayStreams::resume(const std::string& session, std::string_view last_event_id,
                           std::shared_ptr<api::Stream> stream) {
    const Place place = find(session, last_event_id);
    if (place.log) {
        place.log->attach(std::move(stream), place.event);
    } else {
        stream->finish();
    }
}

}  // namespace hearth::mcp
