#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/http/Handler.h"
#include "api/mcp/protocol/JsonRpc.h"
#include "base/Subscribers.h"

namespace hearth::mcp {

/// "event: message" with one JSON message.
std::string sseEvent(const Json& message);

/// The way to the client for an answer that is not complete yet. Shared by the calls of a batch;
/// the answer ends with the last pointer. Thread-safe.
class MessageSink {
public:
    MessageSink() = default;
    MessageSink(const MessageSink&) = delete;
    MessageSink& operator=(const MessageSink&) = delete;
    virtual ~MessageSink() = default;
    virtual void send(const Json& message) = 0;
    /// True if messages sent from now on will never be read.
    virtual bool closed() const = 0;
    /// True if it is closed because the right to the answer ended; the client has not hung up.
    virtual bool lapsed() const { return false; }
    /// Calls `callback` from any thread when the sink closes, or at once if it is closed. It must
    /// not block. Destroying the result ends this; a call may still be in progress then.
    virtual std::shared_ptr<void> onClosed(std::function<void()> callback) = 0;
    /// Ends the connection if the client can fetch the rest later; else does nothing.
    virtual void hangUp() {}
};

/// One SSE answer, which ends with this object.
class StreamSink final : public MessageSink {
public:
    explicit StreamSink(std::shared_ptr<api::Stream> stream);
    ~StreamSink() override { stream_->finish(); }

    void send(const Json& message) override { stream_->send(sseEvent(message)); }
    bool closed() const override { return stream_->closed(); }
    bool lapsed() const override { return stream_->lapsed(); }
    std::shared_ptr<void> onClosed(std::function<void()> callback) override;

private:
    const std::shared_ptr<api::Stream> stream_;
    const std::shared_ptr<Subscribers> closing_ = std::make_shared<Subscribers>();
};

}  // namespace hearth::mcp
