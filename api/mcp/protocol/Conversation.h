#pragma once

#include <string>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/task/Task.h"

namespace hearth::mcp {

/// The talk of a call with its client while it works. Used from the call's task only. Messages that
/// the client did not ask for (progress without a token, log below its level) are dropped.
class Conversation {
public:
    virtual ~Conversation() = default;
    virtual void progress(double done, double total) = 0;
    /// `level`: "debug" to "emergency".
    virtual void log(const std::string& level, const Json& data) = 0;
    /// Asks the client, waits for its answer and returns the result. Revisions with a session only.
    /// Throws RpcFailure if the client refuses or takes too long.
    virtual Task<Json> ask(std::string method, Json params) = 0;
    /// Ends the connection, not the answer: the client fetches the rest with Last-Event-ID. Does
    /// nothing if the revision has no Last-Event-ID.
    virtual void hangUp() = 0;
};

}  // namespace hearth::mcp
