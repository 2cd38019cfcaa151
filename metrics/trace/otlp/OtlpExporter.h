#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"
#include "metrics/trace/otlp/OtlpSettings.h"
#include "metrics/trace/otlp/SpanQueue.h"

namespace hearth::metrics {

/// Sends spans to a receiver of OTLP over HTTP, in batches, from its own thread. The receiver
/// never delays other work: at most `queue` spans wait, shared by the tenants (SpanQueue); the rest
/// is dropped and counted.
class OtlpExporter final : public SpanSink {
public:
    /// The references outlive it. Throws Error(InvalidArgument) for a URL or a file that cannot be
    /// used.
    OtlpExporter(OtlpSettings settings, const Clock& clock, Log& log, Metrics& metrics);
    /// Sends the waiting spans, for three seconds at most plus the look-up of the receiver's name.
    ~OtlpExporter() override;
    OtlpExporter(const OtlpExporter&) = delete;
    OtlpExporter& operator=(const OtlpExporter&) = delete;

    void take(Span span) override;

private:
    /// The result of one try.
    struct Answer {
        bool again = false;                  ///< it may succeed later
        bool too_large = false;              ///< a batch with fewer spans may be accepted
        std::string why{};                   ///< the reason of a failure
        std::chrono::milliseconds after{0};  ///< wait requested by the receiver
        bool taken = false;
    };

    void run(const std::stop_token& stop);
    void sendAll(std::vector<Span> spans, const std::stop_token& stop);
    void send(const std::vector<Span>& spans, const std::stop_token& stop);
    /// The offset from the server's clock to wall time; all batches share it until a clock is set.
    std::chrono::nanoseconds toWall();
    void sendHalves(const std::vector<Span>& spans, const std::stop_token& stop);
    Answer attempt(const std::string& body, std::size_t spans, TimePoint until);
    Answer judge(const http::ClientResponse& response, std::size_t spans);
    void drop(const char* reason, std::size_t spans);
    /// Logs one line when a failure begins, one per minute while it lasts, and one when it ends.
    void tell(const std::string& trouble);

    const OtlpSettings settings_;
    const Clock& clock_;
    Log& log_;
    Metrics& metrics_;
    http::HttpClient client_;
    std::string trouble_;  ///< the logged failure; used by the thread, like the next
    TimePoint told_{};
    std::chrono::nanoseconds to_wall_{0};
    Mutex mutex_;
    StoppableCondition wake_;
    SpanQueue queue_ HEARTH_GUARDED_BY(mutex_);
    bool done_ HEARTH_GUARDED_BY(mutex_) = false;
    std::atomic<bool> abandoned_{false};  ///< ends a try under way
    std::jthread thread_;
};

}  // namespace hearth::metrics
