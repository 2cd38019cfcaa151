#pragma once

#include <thread>

#include "api/mcp/stdio/Upstream.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"

namespace hearth::mcp {

/// Passes on the messages that the server sends without a request (changed lists, questions) as
/// they come. One thread with one connection, reconnected when it breaks; ends with the object.
class SessionStream {
public:
    /// `upstream` must outlive this object; `deliver` is called in its thread.
    SessionStream(Upstream& upstream, Upstream::Deliver deliver);
    SessionStream(const SessionStream&) = delete;
    SessionStream& operator=(const SessionStream&) = delete;
    ~SessionStream();

    static constexpr std::chrono::seconds kRetry{2};

private:
    void loop(const std::stop_token& stop);

    Upstream& upstream_;
    const Upstream::Deliver deliver_;
    http::HttpClient client_;
    Mutex mutex_;
    StoppableCondition pause_;
    std::jthread thread_;
};

}  // namespace hearth::mcp
