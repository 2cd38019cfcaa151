#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "api/mcp/protocol/Call.h"
#include "api/mcp/protocol/JsonRpc.h"
#include "base/Clock.h"
#include "controller/contract/Principal.h"

namespace hearth::mcp {

/// How long a call waits for a sandbox. Clients give up after a minute (the official SDKs by
/// default, even with progress) and would miss an answer that comes later.
inline constexpr std::chrono::seconds kClaimPatience{45};

/// The caller of a tool, prompt or resource, and the kind of call.
struct CallContext {
    controller::Principal who;
    TimePoint started_at{};
    std::string origin{};   ///< "http://host" as the client reaches this server; may be empty
    std::string session{};  ///< the session's id, or a stdio bridge's own; empty if there is none
    bool modern = false;    ///< 2026-07-28 or later
    std::chrono::milliseconds patience = kClaimPatience;  ///< the longest wait of a claim
    Json client_capabilities = Json::object();
    /// The client's answers to InputRequired, by key; an object.
    Json input_responses = Json::object();
    std::optional<std::string>
        request_state{};  ///< as the client sent it back: hostile until checked

    std::shared_ptr<Call> call{};  ///< of a tool; else null

    bool clientCan(const std::string& capability) const {
        return member(client_capabilities, capability) != nullptr;
    }
};

/// Questions to the client in place of a result; the client repeats the request with its answers.
/// 2026-07-28 or later.
struct InputRequired {
    Json requests = Json::object();  ///< by key: {"method", "params"}; may be empty
    std::string state{};             ///< the client returns it with the answers; empty: none
};

/// Returns the refusal of a call that needs a capability the client has not declared.
inline RpcFailure missingCapability(const std::string& capability) {
    return RpcFailure({rpc::kMissingCapability,
                       "Missing required client capability: " + capability,
                       {{"requiredCapabilities", {{capability, Json::object()}}}}});
}

}  // namespace hearth::mcp
