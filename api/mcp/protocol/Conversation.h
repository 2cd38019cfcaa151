#pragma once

#include <string>

#include "api/mcp/protocol/JsonRpc.h"

namespace hearth::mcp {

/// How a call that runs in its own thread talks with its client. Used from that thread only.
/// Messages that the client did not ask for (progress without a token, log below its level) are
/// dropped.
class Conversation {
public:
    virtual ~Conversation() = default;
    virtual void progress(double done, double total) = 0;
    /// `level`: "debug" to "emergency".
    virtual void log(const std::string& level, const Json& data) = 0;
    /// Asks the client and waits for its answer: the result. Revisions with a session only.
    /// Throws RpcFailure where the client refuses, goes away or takes too long.
    virtual Json ask(const std::string& method, Json params) = 0;
    /// Ends the connection, not the answer: the client fetches the rest with Last-Event-ID. Does
    /// nothing where the revision knows no such thing.
    virtual void hangUp() = 0;
    /// The client has taken the call back, or the server stops.
    virtual bool cancelled() const = 0;
};

}  // namespace hearth::mcp
