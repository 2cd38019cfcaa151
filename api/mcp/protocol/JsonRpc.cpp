#include "api/mcp/protocol/JsonRpc.h"

#include <utility>

namespace hearth::mcp {
namespace {

bool isRequestId(const Json& value) {
    return value.is_string() || value.is_number_integer();
}

/// An object's members that are not null: clients write null for what they leave out.
Json withoutNullMembers(const Json& object) {
    Json out = Json::object();
    for (const auto& [name, value] : object.items()) {
        if (!value.is_null()) out[name] = value;
    }
    return out;
}

Message invalid(Message message, std::string problem) {
    message.kind = MessageKind::Invalid;
    message.problem = std::move(problem);
    return message;
}

}  // namespace

Message readMessage(const Json& body) {
    Message message;
    if (!body.is_object()) return invalid(message, "a message must be a JSON object");
    const Json* id = member(body, "id");
    if (id != nullptr) {
        if (!isRequestId(*id)) return invalid(message, "id must be a string or an integer");
        if (id->is_string() && id->get_ref<const std::string&>().size() > kLongestId) {
            return invalid(message, "id is longer than " + std::to_string(kLongestId) + " bytes");
        }
        message.id = *id;
    }
    if (stringMember(body, "jsonrpc") != "2.0") {
        return invalid(std::move(message), "jsonrpc must be \"2.0\"");
    }
    const Json* method = member(body, "method");
    if (method == nullptr) {
        const Json* result = member(body, "result");
        const Json* error = member(body, "error");
        if (result == nullptr && error == nullptr) {
            return invalid(std::move(message), "method is missing");
        }
        message.kind = MessageKind::Response;
        if (result != nullptr) message.result = *result;
        if (error != nullptr) message.error = *error;
        return message;
    }
    if (!method->is_string()) return invalid(std::move(message), "method must be a string");
    message.method = method->get<std::string>();
    if (const Json* params = member(body, "params"); params != nullptr && !params->is_null()) {
        if (!params->is_object()) return invalid(std::move(message), "params must be an object");
        message.params = withoutNullMembers(*params);
    }
    message.kind = id != nullptr ? MessageKind::Request : MessageKind::Notification;
    return message;
}

Json resultMessage(const Json& id, Json result) {
    Json message = {{"jsonrpc", "2.0"}, {"id", id}};
    message["result"] = std::move(result);
    return message;
}

Json errorMessage(const Json& id, const RpcError& error) {
    Json message = {{"jsonrpc", "2.0"}};
    if (!id.is_null()) message["id"] = id;
    message["error"] = {{"code", error.code}, {"message", error.message}};
    if (!error.data.is_null()) message["error"]["data"] = error.data;
    return message;
}

Json notificationMessage(const std::string& method, Json params) {
    Json message = {{"jsonrpc", "2.0"}, {"method", method}};
    message["params"] = std::move(params);
    return message;
}

Json requestMessage(const Json& id, const std::string& method, Json params) {
    Json message = notificationMessage(method, std::move(params));
    message["id"] = id;
    return message;
}

const Json* member(const Json& value, const std::string& key) {
    if (!value.is_object()) return nullptr;
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
}

std::optional<std::string> stringMember(const Json& value, const std::string& key) {
    const Json* found = member(value, key);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
}

}  // namespace hearth::mcp
