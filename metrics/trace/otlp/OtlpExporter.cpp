#include "metrics/trace/otlp/OtlpExporter.h"

#include <Poco/DeflatingStream.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/Error.h"
#include "metrics/trace/otlp/OtlpMessage.h"

namespace hearth::metrics {
namespace {

constexpr std::chrono::seconds kFarewell{3};
constexpr std::chrono::milliseconds kFirstPause{500};
constexpr std::chrono::milliseconds kLongestPause{8'000};
constexpr std::size_t kMostAnswer = 64U << 10U;
constexpr std::size_t kLongestWhy = 200;
constexpr int kTooLarge = 413;
/// The least time between two log lines about a failure.
constexpr std::chrono::minutes kQuiet{1};
/// A larger difference between the two clocks means that the wall clock was set.
constexpr std::chrono::milliseconds kClockMoved{5};
constexpr int kTries = 3;

std::string gzipped(const std::string& bytes) {
    std::ostringstream out;
    Poco::DeflatingOutputStream to(out, Poco::DeflatingStreamBuf::STREAM_GZIP);
    to << bytes;
    to.close();
    return out.str();
}

http::ClientOptions optionsOf(const OtlpSettings& settings) {
    http::ClientOptions options;
    options.connect_timeout = settings.timeout;
    options.timeout = settings.timeout;
    options.max_body = kMostAnswer;
    for (const auto& each : settings.headers) options.headers.push_back(each);
    if (!settings.authority.empty() || !settings.certificate.empty()) {
        options.tls = std::make_shared<http::TlsContext>(
            http::TlsContext::Files{.authority = settings.authority,
                                    .certificate = settings.certificate,
                                    .key = settings.key,
                                    .machine_authorities = true});
    }
    return options;
}

/// The header Retry-After in whole seconds; zero if there is none. Dates count as none.
std::chrono::milliseconds retryAfter(const http::ClientResponse& response) {
    const std::string told = response.header("Retry-After").value_or("");
    unsigned seconds = 0;
    const auto read = std::from_chars(told.data(), told.data() + told.size(), seconds);
    constexpr unsigned kMost = 3'600;
    return read.ec == std::errc() ? std::chrono::seconds(std::min(seconds, kMost))
                                  : std::chrono::seconds(0);
}

bool passing(int status) {
    return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

OtlpExporter::OtlpExporter(OtlpSettings settings, const Clock& clock, Log& log, Metrics& metrics)
    : settings_(std::move(settings)),
      clock_(clock),
      log_(log),
      metrics_(metrics),
      client_(settings_.url, optionsOf(settings_)),
      queue_(settings_.queue),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

OtlpExporter::~OtlpExporter() {
    thread_.request_stop();
    {
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, kFarewell, [this]() HEARTH_REQUIRES(mutex_) { return done_; });
    }
    abandoned_ = true;
}

void OtlpExporter::take(Span span) {
    const MutexLock lock(mutex_);
    const std::size_t lost = queue_.push(std::move(span));
    if (lost > 0) return drop("queue_full", lost);
    if (queue_.size() == settings_.batch) wake_.notifyAll();
}

void OtlpExporter::run(const std::stop_token& stop) {
    while (true) {
        std::vector<Span> spans;
        {
            const MutexLock lock(mutex_);
            wake_.waitFor(mutex_, stop, settings_.delay, [this]() HEARTH_REQUIRES(mutex_) {
                return queue_.size() >= settings_.batch;
            });
            if (queue_.size() == 0 && stop.stop_requested()) {
                done_ = true;
                wake_.notifyAll();
                return;
            }
            spans = queue_.takeAll();
        }
        sendAll(std::move(spans), stop);
    }
}

void OtlpExporter::sendAll(std::vector<Span> spans, const std::stop_token& stop) {
    for (std::size_t begin = 0; begin < spans.size(); begin += settings_.batch) {
        const std::size_t end = std::min(begin + settings_.batch, spans.size());
        const auto at = [&](std::size_t i) {
            return spans.begin() + static_cast<std::ptrdiff_t>(i);
        };
        std::vector<Span> batch(std::make_move_iterator(at(begin)),
                                std::make_move_iterator(at(end)));
        try {
            send(batch, stop);
        } catch (const std::exception& e) {  // it could not even be serialized
            tell(e.what());
            drop("refused", batch.size());
        }
    }
}

void OtlpExporter::send(const std::vector<Span>& spans, const std::stop_token& stop) {
    const SpanBatch batch{settings_.resource, spans, toWall()};
    std::string body = otlpProtobuf(batch);
    if (settings_.gzip) body = gzipped(body);
    const TimePoint until = clock_.now() + settings_.patience;
    std::chrono::milliseconds pause = kFirstPause;
    while (true) {
        const Answer answer = attempt(body, spans.size(), until);
        if (answer.too_large && spans.size() > 1) return sendHalves(spans, stop);
        tell(answer.why);
        if (answer.taken) return;
        if (!answer.again) return drop("refused", spans.size());
        const std::chrono::milliseconds wait = std::max(answer.after, pause);
        if (clock_.now() + wait >= until) return drop("unreachable", spans.size());
        pause = std::min(pause * 2, kLongestPause);
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, stop, wait, [] { return false; });
        if (stop.stop_requested()) return drop("unreachable", spans.size());
    }
}

std::chrono::nanoseconds OtlpExporter::toWall() {
    // The thread may be interrupted between two clock reads: of two spans that began together in
    // different batches, one would seem to be earlier. The shortest of a few tries is kept.
    std::chrono::nanoseconds found{0};
    std::chrono::nanoseconds shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < kTries; ++i) {
        const TimePoint before = clock_.now();
        const WallTime wall = clock_.wall();
        const TimePoint after = clock_.now();
        if (after - before >= shortest) continue;
        shortest = after - before;
        found = wall.time_since_epoch() - (before + shortest / 2).time_since_epoch();
    }
    if (to_wall_ == std::chrono::nanoseconds(0) || std::chrono::abs(found - to_wall_) > kClockMoved)
        to_wall_ = found;
    return to_wall_;
}

void OtlpExporter::sendHalves(const std::vector<Span>& spans, const std::stop_token& stop) {
    const auto middle = spans.begin() + static_cast<std::ptrdiff_t>(spans.size() / 2);
    send({spans.begin(), middle}, stop);
    send({middle, spans.end()}, stop);
}

OtlpExporter::Answer OtlpExporter::attempt(const std::string& body, std::size_t spans,
                                           TimePoint until) {
    http::ClientRequest request;
    request.method = "POST";
    request.target = "";
    request.headers = {{"Content-Type", "application/x-protobuf"}};
    if (settings_.gzip) request.headers.emplace_back("Content-Encoding", "gzip");
    request.body = body;
    request.until = until;
    request.stop = &abandoned_;
    try {
        return judge(client_.request(request), spans);
    } catch (const std::exception& trouble) {
        return {.again = true, .why = trouble.what()};
    }
}

OtlpExporter::Answer OtlpExporter::judge(const http::ClientResponse& response, std::size_t spans) {
    if (response.status < 200 || response.status > 299) {
        return {.again = passing(response.status),
                .too_large = response.status == kTooLarge,
                .why = "it answered " + std::to_string(response.status),
                .after = retryAfter(response)};
    }
    const PartialSuccess told = partialSuccessOfProtobuf(response.body);
    const std::size_t rejected = std::min(told.rejected, spans);
    if (rejected > 0) drop("refused", rejected);
    metrics_.traces().exported(static_cast<double>(spans - rejected));
    return {.why = rejected > 0 ? "it rejects spans: " + told.why.substr(0, kLongestWhy) : "",
            .taken = true};
}

void OtlpExporter::drop(const char* reason, std::size_t spans) {
    metrics_.traces().dropped(reason, static_cast<double>(spans));
}

void OtlpExporter::tell(const std::string& trouble) {
    if (trouble.empty() == trouble_.empty() && clock_.now() - told_ < kQuiet) return;
    if (trouble.empty() && trouble_.empty()) return;
    trouble_ = trouble;
    told_ = clock_.now();
    if (trouble.empty()) return log_.info("trace.sent_again", {{"to", settings_.place()}});
    log_.warn("trace.not_sent", {{"to", settings_.place()}, {"why", trouble}});
}

}  // namespace hearth::metrics
