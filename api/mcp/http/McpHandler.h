#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/auth/Authenticator.h"
#include "api/auth/WorkerShares.h"
#include "api/http/Handler.h"
#include "api/mcp/Server.h"
#include "api/mcp/http/SlowCalls.h"
#include "api/mcp/protocol/Session.h"
#include "controller/Services.h"

namespace hearth::mcp {

struct McpOptions {
    /// How long a call may keep its worker thread (and a plain JSON answer) before it goes on as
    /// an SSE stream.
    std::chrono::milliseconds inline_wait{1'000};
    std::size_t max_body = 4U << 20U;
    /// Slow calls at once; more are refused with a hint to run in the background.
    std::size_t max_slow_calls = 1'000;
};

/// MCP over Streamable HTTP on /mcp: POST and DELETE; there is no GET stream. Serves the revisions
/// with a handshake, 2024-10-07 to 2025-11-25; a request of 2026-07-28 is told so in that
/// revision's own words (modern()), upon which clients fall back.
class McpHandler final : public api::Handler {
public:
    /// All references outlive the handler, and the front must stop before it goes.
    McpHandler(const controller::Services& services, const auth::Authenticator& authenticator,
               const auth::WorkerShares& shares, McpOptions options = {});

    api::Response handle(api::Request& request) override;

private:
    enum class Accepts { Json, EventsOnly, Both, Neither };
    struct Answers {
        std::vector<Json> done;
        std::vector<SlowCall> slow;
        bool batch = false;
    };

    api::Response post(api::Request& request);
    api::Response endSession(api::Request& request);
    api::Response legacy(api::Request& request, const controller::Principal& who,
                         const Classified& classified, Accepts accepts);
    api::Response initialize(const controller::Principal& who, const Message& message,
                             Accepts accepts);
    /// The one place where requests of the modern era arrive.
    api::Response modern(const Classified& classified);
    api::Response answer(api::Request& request, Answers answers, Accepts accepts);
    api::Response stream(api::Request& request, Answers answers);
    /// For clients that take no event stream: the answer comes when every call is done.
    api::Response later(api::Request& request, Answers answers);
    void waitInline(Answers& answers);

    static Accepts accepted(const api::Request& request);

    const controller::Services& services_;
    const auth::Authenticator& authenticator_;
    const auth::WorkerShares& shares_;
    const McpOptions options_;
    SessionIds sessions_;
    Server server_;
    std::shared_ptr<SlowCalls> slow_calls_;  ///< stream starters may outlive a request
};

}  // namespace hearth::mcp
