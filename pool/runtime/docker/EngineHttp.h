#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/Clock.h"
#include "pool/runtime/docker/EngineStream.h"

namespace hearth::pool::docker {

/// Gives pieces of a request's body: up to `size` bytes into `out`, 0 at its end.
using EngineSource = std::function<std::size_t(char* out, std::size_t size)>;

struct EngineRequest {
    std::string method = "GET";
    std::string target;                       ///< path and query, encoded
    std::string body;                         ///< JSON; empty: none
    EngineSource archive = {};                ///< instead of `body`: a tar, streamed
    const std::atomic<bool>* stop = nullptr;  ///< ends it when it becomes true
};

struct EngineResponse {
    int status = 0;
    std::string api_version;  ///< of the header Api-Version
    std::string body;
};

/// One HTTP/1.1 exchange on a fresh connection. Answers are bounded: 64 KiB of head, `max_body` of
/// body; one that is longer or no HTTP is a std::runtime_error.
EngineResponse exchange(EngineStream& stream, const EngineRequest& request, std::size_t max_body,
                        TimePoint until);

/// Asks for a connection to be handed over to the stream of `request`. With a status below 400 it
/// has been, and `early` is what has come of that stream already; else the answer is a refusal.
EngineResponse upgrade(EngineStream& stream, const EngineRequest& request, std::size_t max_body,
                       TimePoint until, std::string& early);

/// `text` as one component of a path or a query.
std::string percentEncoded(std::string_view text);

}  // namespace hearth::pool::docker
