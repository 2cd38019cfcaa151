#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/Json.h"

namespace hearth::mcp {

/// The codes that MCP and JSON-RPC give to failures.
namespace rpc {
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternal = -32603;
constexpr int kTransport = -32000;
constexpr int kSessionNotFound = -32001;
constexpr int kHeaderMismatch = -32020;
constexpr int kUnsupportedVersion = -32022;
}  // namespace rpc

struct RpcError {
    int code = rpc::kInternal;
    std::string message;
    Json data;  ///< null: left out
};

enum class MessageKind { Request, Notification, Response, Invalid };

/// One JSON-RPC message that came in.
struct Message {
    MessageKind kind = MessageKind::Invalid;
    Json id;  ///< string or integer of a request or response, exactly as sent; null otherwise
    std::string method;
    Json params = Json::object();
    std::string problem;  ///< why it is Invalid
};

/// Reads one message; never throws. An Invalid message keeps its id if that could be read.
Message readMessage(const Json& body);

Json resultMessage(const Json& id, Json result);
/// Without `id` where the request's is unknown: the schema allows no null.
Json errorMessage(const Json& id, const RpcError& error);
Json notificationMessage(const std::string& method, Json params);

/// A member by key, or nullptr where `value` is no object or has none.
const Json* member(const Json& value, const std::string& key);
/// A string member; nullopt where absent or of another type.
std::optional<std::string> stringMember(const Json& value, const std::string& key);

}  // namespace hearth::mcp
