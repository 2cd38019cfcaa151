#include "api/mcp/http/MessageSink.h"

#include <utility>

namespace hearth::mcp {

std::string sseEvent(const Json& message) {
    return "event: message\ndata: " + dumpJson(message) + "\n\n";
}

StreamSink::StreamSink(std::shared_ptr<api::Stream> stream) : stream_(std::move(stream)) {
    stream_->onClosed([closing = closing_] { closing->notify(); });
}

std::shared_ptr<void> StreamSink::onClosed(std::function<void()> callback) {
    std::shared_ptr<void> subscription = closing_->add(callback);
    if (stream_->closed()) callback();
    return subscription;
}

}  // namespace hearth::mcp
