#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/Json.h"

namespace hearth::mcp {

// Limits of client-supplied text that is kept for the life of a call or of a session, in bytes.
inline constexpr std::size_t kLongestId = 256;  ///< also for a progress token
inline constexpr std::size_t kLongestUri = 512;

/// The codes that MCP and JSON-RPC give to failures.
namespace rpc {
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternal = -32603;
constexpr int kTransport = -32000;
constexpr int kSessionNotFound = -32001;
constexpr int kResourceNotFound = -32002;  ///< before 2026-07-28; since then kInvalidParams
constexpr int kHeaderMismatch = -32020;
constexpr int kMissingCapability = -32021;
constexpr int kUnsupportedVersion = -32022;
}  // namespace rpc

struct RpcError {
    int code = rpc::kInternal;
    std::string message;
    Json data;  ///< null: left out
};

/// A refusal of a request by the protocol itself; a tool's Error becomes the tool's result instead.
class RpcFailure : public std::runtime_error {
public:
    explicit RpcFailure(RpcError error)
        : std::runtime_error(error.message), error_(std::move(error)) {}
    const RpcError& error() const { return error_; }

private:
    RpcError error_;
};

enum class MessageKind { Request, Notification, Response, Invalid };

/// One JSON-RPC message that came in.
struct Message {
    MessageKind kind = MessageKind::Invalid;
    Json id;  ///< string or integer of a request or response, exactly as sent; null otherwise
    std::string method;
    Json params = Json::object();
    Json result;          ///< the Response's result; null if it is an error
    Json error;           ///< the Response's error; null if it is a result
    std::string problem;  ///< why it is Invalid
};

/// Reads one message; never throws. An Invalid message keeps its id if that could be read.
Message readMessage(const Json& body);

Json resultMessage(const Json& id, Json result);
/// Omits `id` if the request's id is unknown: the schema allows no null.
Json errorMessage(const Json& id, const RpcError& error);
Json notificationMessage(const std::string& method, Json params);
Json requestMessage(const Json& id, const std::string& method, Json params);

/// Returns a member by key, or nullptr if `value` is not an object or has no such member.
const Json* member(const Json& value, const std::string& key);
/// Returns a string member; nullopt if it is absent or of another type.
std::optional<std::string> stringMember(const Json& value, const std::string& key);

}  // namespace hearth::mcp
