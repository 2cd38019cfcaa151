#include "api/rest/streams/LogStream.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/rest/streams/Sse.h"

namespace hearth::rest {
namespace {

constexpr std::size_t kAtOnce = 100;

}  // namespace

void listFields(Shape<metrics::LogTail::Line>& shape) {
    using View = metrics::LogTail::Line;
    shape.schema().named("LogLine");
    shape.field("id", &View::id)
        .field("text", &View::text, {toUtf8, "In the format of --log-format"});
}

void LogStream::start(metrics::LogTail& tail, std::uint64_t after,
                      std::shared_ptr<api::Stream> stream) {
    std::make_shared<LogStream>(Key{}, tail, after, std::move(stream))->begin();
}

LogStream::LogStream(Key, metrics::LogTail& tail, std::uint64_t after,
                     std::shared_ptr<api::Stream> stream)
    : tail_(tail), stream_(std::move(stream)), after_(after) {}

void LogStream::begin() {
    const std::weak_ptr<LogStream> weak = weak_from_this();
    const auto move = [weak] {
        if (const std::shared_ptr<LogStream> self = weak.lock()) self->pump();
    };
    stream_->onDrained(move);
    subscription_ = tail_.subscribe(move);
    pump();
    const auto keeper = std::make_shared<std::shared_ptr<LogStream>>(shared_from_this());
    stream_->onClosed([keeper] {
        if (const std::shared_ptr<LogStream> self = std::exchange(*keeper, nullptr)) {
            const std::shared_ptr<void> ended = std::move(self->subscription_);
        }
    });
}

void LogStream::pump() {
    turnstile_.pass([this] {
        try {  // the top of a callback in a foreign thread: a failure ends only this stream
            step();
        } catch (const std::exception&) {
            stream_->finish();
        }
    });
}

void LogStream::step() {
    while (!stream_->closed() && stream_->pending() <= api::Stream::kHighWater) {
        const std::vector<metrics::LogTail::Line> lines = tail_.after(after_, kAtOnce);
        for (const metrics::LogTail::Line& line : lines) {
            after_ = line.id;
            stream_->send(sseEvent("line", line.id, jsonOf(line)));
        }
        if (lines.size() < kAtOnce) return;
    }
}

}  // namespace hearth::rest
