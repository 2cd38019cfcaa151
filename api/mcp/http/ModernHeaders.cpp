#include "api/mcp/http/ModernHeaders.h"

#include <charconv>

#include "base/Ids.h"
#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

constexpr std::string_view kOpen = "=?base64?";
constexpr std::string_view kClose = "?=";
constexpr int kDeepest = 8;

std::string mismatch(const std::string& header, const std::optional<std::string>& value,
                     const std::string& body) {
    if (!value) return header + " is missing; the body has '" + toUtf8(body) + "'";
    return header + " '" + toUtf8(*value) + "' does not match body '" + toUtf8(body) + "'";
}

/// The parameter that Mcp-Name repeats; empty for methods without one.
std::string nameParameter(const std::string& method) {
    if (method == "tools/call" || method == "prompts/get") return "name";
    if (method == "resources/read") return "uri";
    return {};
}

bool sameNumber(const std::string& header, std::int64_t body) {
    std::int64_t value = 0;
    const auto [end, problem] =
        std::from_chars(header.data(), header.data() + header.size(), value);
    return problem == std::errc() && end == header.data() + header.size() && value == body;
}

bool matches(const std::string& header, const Json& body) {
    if (body.is_string()) return header == body.get<std::string>();
    if (body.is_boolean()) return header == (body.get<bool>() ? "true" : "false");
    return body.is_number_integer() && sameNumber(header, body.get<std::int64_t>());
}

std::optional<std::string> parameterMismatch(const api::Request& request, const Json& schema,
                                             const Json& values, int depth) {
    const Json* properties = member(schema, "properties");
    if (properties == nullptr || depth > kDeepest) return std::nullopt;
    for (const auto& [name, property] : properties->items()) {
        const Json* value = member(values, name);
        if (value == nullptr || value->is_null()) continue;
        if (const auto header = stringMember(property, "x-mcp-header")) {
            const std::string full = "Mcp-Param-" + *header;
            const std::optional<std::string> raw = request.header(full);
            const std::optional<std::string> sent =
                raw ? decodedHeader(*raw) : std::optional<std::string>();
            if (!sent || !matches(*sent, *value)) return mismatch(full, raw, dumpJson(*value));
        }
        if (auto deeper = parameterMismatch(request, property, *value, depth + 1)) return deeper;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> decodedHeader(std::string_view value) {
    value = trim(value);
    if (!value.starts_with(kOpen) || !value.ends_with(kClose) ||
        value.size() < kOpen.size() + kClose.size()) {
        return std::string(value);
    }
    const std::string_view encoded =
        value.substr(kOpen.size(), value.size() - kOpen.size() - kClose.size());
    std::string bytes;
    if (encoded.size() % 4 != 0 || !base64Decode(encoded, bytes)) return std::nullopt;
    return bytes;
}

std::optional<std::string> headerMismatch(const api::Request& request, const Message& message,
                                          const Toolbox& tools) {
    if (!request.header("MCP-Protocol-Version")) return "MCP-Protocol-Version is missing";
    const std::optional<std::string> method = request.header("Mcp-Method");
    if (!method || trim(*method) != message.method) {
        return mismatch("Mcp-Method", method, message.method);
    }
    const std::string parameter = nameParameter(message.method);
    if (parameter.empty()) return std::nullopt;
    const std::string named = stringMember(message.params, parameter).value_or("");
    const std::optional<std::string> raw = request.header("Mcp-Name");
    const std::optional<std::string> sent = raw ? decodedHeader(*raw) : std::nullopt;
    if (!sent || *sent != named) return mismatch("Mcp-Name", raw, named);
    if (message.method != "tools/call") return std::nullopt;
    const Tool* tool = tools.find(named);
    const Json* arguments = member(message.params, "arguments");
    if (tool == nullptr || arguments == nullptr) return std::nullopt;
    return parameterMismatch(request, tool->schema, *arguments, 0);
}

}  // namespace hearth::mcp
