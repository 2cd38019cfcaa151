#include "api/mcp/protocol/Era.h"

#include <algorithm>

#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

constexpr std::size_t kMaxBatch = 100;

Classified refuse(int status, const Json& id, int code, std::string message) {
    Classified out;
    out.kind = Classified::Kind::Refused;
    out.status = status;
    out.id = id;
    out.error = {code, std::move(message), {}};
    return out;
}

Classified legacy(Message message) {
    Classified out;
    out.messages.push_back(std::move(message));
    return out;
}

const Json* metaOf(const Json& body) {
    const Json* params = member(body, "params");
    return params == nullptr ? nullptr : member(*params, "_meta");
}

bool hasClaim(const Json& body) {
    const Json* meta = metaOf(body);
    return meta != nullptr && member(*meta, envelope::kVersion) != nullptr;
}

bool isModernDate(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i != 4 && i != 7 && (text[i] < '0' || text[i] > '9')) return false;
    }
    return text >= kFirstModern;
}

const Json* given(const Json& meta, const std::string& key) {
    const Json* value = member(meta, key);
    return value == nullptr || value->is_null() ? nullptr : value;
}

/// The fault of an envelope; empty if there is none.
std::string envelopeProblem(const Json& meta) {
    if (!stringMember(meta, envelope::kVersion))
        return std::string(envelope::kVersion) + " must be a string";
    const Json* capabilities = member(meta, envelope::kCapabilities);
    if (capabilities == nullptr || !capabilities->is_object()) {
        return std::string(envelope::kCapabilities) + " must be an object";
    }
    if (const Json* client = given(meta, envelope::kClient)) {
        if (!stringMember(*client, "name") || !stringMember(*client, "version")) {
            return std::string(envelope::kClient) + " needs name and version";
        }
    }
    if (const Json* level = given(meta, envelope::kLogLevel)) {
        if (!level->is_string() || !logSeverity(level->get<std::string>())) {
            return std::string(envelope::kLogLevel) + " is not a log level";
        }
    }
    return {};
}

Classified classifyBatch(const Json& body) {
    if (body.empty()) return refuse(400, {}, rpc::kInvalidRequest, "an empty batch");
    if (body.size() > kMaxBatch) {
        return refuse(400, {}, rpc::kInvalidRequest, "a batch of more than 100 messages");
    }
    Classified out;
    out.batch = true;
    for (const Json& element : body) {
        if (hasClaim(element)) {
            return refuse(400, {}, rpc::kInvalidRequest,
                          "messages of this protocol version cannot be batched");
        }
        out.messages.push_back(readMessage(element));
    }
    return out;
}

Classified classifyRequest(const Json& body, Message message, const std::string& header,
                           bool header_modern) {
    const bool claim = hasClaim(body);
    const std::string problem = claim ? envelopeProblem(*metaOf(body)) : std::string();
    if (message.method == "initialize" && (!claim || !problem.empty())) {
        if (header_modern) {
            return refuse(400, message.id, rpc::kHeaderMismatch,
                          "initialize does not exist in protocol version " + header);
        }
        return legacy(std::move(message));
    }
    if (!claim) {
        if (!header_modern) return legacy(std::move(message));
        return refuse(400, message.id, rpc::kInvalidParams,
                      std::string("params._meta lacks ") + envelope::kVersion + " and " +
                          envelope::kCapabilities);
    }
    if (!problem.empty()) return refuse(400, message.id, rpc::kInvalidParams, problem);
    Classified out;
    out.version = *stringMember(*metaOf(body), envelope::kVersion);
    if (!header.empty() && header != out.version) {
        return refuse(400, message.id, rpc::kHeaderMismatch,
                      "Header mismatch: MCP-Protocol-Version '" + toUtf8(header) +
                          "' does not match body '" + out.version + "'");
    }
    out.kind = Classified::Kind::Modern;
    out.messages.push_back(std::move(message));
    return out;
}

}  // namespace

std::optional<int> logSeverity(std::string_view level) {
    constexpr std::array<std::string_view, 8> kLevels = {
        "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
    const auto found = std::find(kLevels.begin(), kLevels.end(), level);
    if (found == kLevels.end()) return std::nullopt;
    return static_cast<int>(found - kLevels.begin());
}

bool isModernVersion(std::string_view version) {
    return std::find(kModernVersions.begin(), kModernVersions.end(), version) !=
           kModernVersions.end();
}

bool isLegacyVersion(std::string_view version) {
    return std::find(kLegacyVersions.begin(), kLegacyVersions.end(), version) !=
           kLegacyVersions.end();
}

std::string_view negotiate(std::string_view requested) {
    const auto found = std::find(kLegacyVersions.begin(), kLegacyVersions.end(), requested);
    return found == kLegacyVersions.end() ? kLegacyVersions.front() : *found;
}

Classified classify(const Json& body, const std::optional<std::string>& version_header) {
    if (body.is_array()) return classifyBatch(body);
    const std::string header(trim(version_header.value_or("")));
    const bool header_modern = isModernDate(header);
    Message message = readMessage(body);
    switch (message.kind) {
        case MessageKind::Request:
            return classifyRequest(body, std::move(message), header, header_modern);
        case MessageKind::Response:
            return legacy(std::move(message));
        case MessageKind::Notification: {
            if (!hasClaim(body) && !header_modern) return legacy(std::move(message));
            Classified out;
            out.kind = Classified::Kind::Dropped;
            return out;
        }
        case MessageKind::Invalid:
            break;
    }
    return refuse(400, message.id, rpc::kInvalidRequest, "Invalid request: " + message.problem);
}

}  // namespace hearth::mcp
