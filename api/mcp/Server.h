#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "api/mcp/SlowCall.h"
#include "api/mcp/protocol/Calls.h"
#include "api/mcp/protocol/Era.h"
#include "api/mcp/tools/Tools.h"

namespace hearth::mcp {

/// Where a message came from.
struct Caller {
    controller::Principal who;
    std::string session;
    std::string version;  ///< negotiated protocol version
    TimePoint started_at{};
    std::string request_id;
    std::string origin{};  ///< "http://host"; empty if the client did not say
};

/// The handshake eras' methods, apart from any transport: messages in, answers or slow calls out.
/// Thread-safe. The modern era's methods belong beside it, on the same Toolbox.
class Server {
public:
    /// `services` outlive the server.
    explicit Server(const controller::Services& services);

    /// Nothing for a notification or response; a message; or a call that is still running.
    using Reply = std::variant<std::monostate, Json, SlowCall>;
    Reply handle(const Caller& caller, const Message& message);
    /// The result of `initialize`, or the error that refuses it. Sets `version`.
    Json initialize(const Message& message, std::string& version);

    /// Waits for what is left of a slow call up to `deadline`: its answer (null if cancelled), or
    /// nullopt if it still runs.
    static std::optional<Json> settle(SlowCall& slow, const Clock& clock, TimePoint deadline);

private:
    Reply callTool(const Caller& caller, const Message& message);
    Json toolAnswer(const std::string& tool, const std::string& request_id, const Json& id,
                    const std::function<ToolResult()>& make) const;
    /// What a tool that failed answers, so that the model can act on it.
    Json refusal(const std::string& tool, const Json& id, const Error& error) const;

    const controller::Services& services_;
    Toolbox tools_;
    Calls calls_;
};

}  // namespace hearth::mcp
