#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/http/Handler.h"
#include "base/Mutex.h"
#include "base/tenants/TenantBytes.h"

namespace hearth::api {

/// Is notified when a stream has written its last byte.
class StreamHost {
public:
    virtual ~StreamHost() = default;
    /// Called from any thread; must not block.
    virtual void streamDone(std::uint64_t connection) = 0;
};

/// The answer of a connection without a waiting thread. A sender writes to the socket itself while
/// nothing is queued; the loop writes the rest when the kernel can take it.
///
/// Its mutex is held across the non-blocking send(2), which keeps the bytes in order.
class DetachedStream final : public Stream {
public:
    struct Settings {
        bool chunked = true;
        std::size_t limit = 8U << 20U;
        std::string tenant;
        /// Counts the queued bytes of streams with more than kHighWater; used only as the clock is.
        /// Null: nothing is counted.
        const TenantBytes* unread = nullptr;
        std::string keepalive;
        std::chrono::nanoseconds keepalive_after{};
        std::chrono::nanoseconds stall{};
    };

    DetachedStream(int fd, std::uint64_t connection, StreamHost& host, const Clock& clock,
                   Settings settings);

    const std::string& tenant() const override { return settings_.tenant; }
    bool send(std::string bytes) override;
    std::size_t pending() const override;
    void finish() override;
    void cut() override;
    bool closed() const override;
    bool lapsed() const override { return lapsed_; }
    void onDrained(std::function<void()> callback) override;
    void onClosed(std::function<void()> callback) override;

    // The loop's side.

    /// The number of bytes that the kernel took.
    std::uint64_t sent() const;

    /// Call before the stream is ended because the right to it has ended: lapsed() is then true.
    void lapse() { lapsed_ = true; }
    enum class State { Open, Done, Broken };
    /// Writes the bytes that the socket takes. Calls onDrained if due.
    State flush();
    /// Sends a keepalive if due; Broken for a client that has stopped reading. Sets `again` to the
    /// time of the next call.
    State tick(TimePoint now, TimePoint& again);
    /// Call before the socket is closed or reused: no byte goes out after this. Calls onClosed.
    void close();

private:
    State writeQueued() HEARTH_REQUIRES(mutex_);
    void queue(std::string_view bytes) HEARTH_REQUIRES(mutex_);
    /// Counts a long queue for the tenant; false if the tenant may have no more.
    bool account() HEARTH_REQUIRES(mutex_);
    void breakOff() HEARTH_REQUIRES(mutex_);

    mutable Mutex mutex_;
    const int fd_;
    const std::uint64_t connection_;
    StreamHost& host_;    ///< used only under mutex_ and while not closed_
    const Clock& clock_;  ///< likewise
    const Settings settings_;
    std::string queue_ HEARTH_GUARDED_BY(mutex_);
    std::size_t queue_at_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t sent_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::shared_ptr<void> counted_ HEARTH_GUARDED_BY(mutex_);  ///< in `unread`, until it is empty
    std::size_t counted_size_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool above_ HEARTH_GUARDED_BY(mutex_) = false;
    bool finished_ HEARTH_GUARDED_BY(mutex_) = false;
    bool broken_ HEARTH_GUARDED_BY(mutex_) = false;
    bool closed_ HEARTH_GUARDED_BY(mutex_) = false;
    std::atomic<bool> lapsed_{false};
    TimePoint last_sent_ HEARTH_GUARDED_BY(mutex_);
    TimePoint last_progress_ HEARTH_GUARDED_BY(mutex_);
    std::function<void()> on_drained_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::function<void()>> on_closed_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::api
