#include "api/mcp/tools/Content.h"

#include <algorithm>

#include "base/Ids.h"

namespace hearth::mcp {
namespace {

bool continues(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::string_view suffixOf(std::string_view bytes, std::size_t size) {
    std::size_t from = bytes.size() - std::min(size, bytes.size());
    for (int i = 0; i < 3 && from < bytes.size() && continues(bytes[from]); ++i) ++from;
    return bytes.substr(from);
}

}  // namespace

ToolResult& ToolResult::text(std::string_view text) {
    content.push_back({{"type", "text"}, {"text", toUtf8(text)}});
    return *this;
}

ToolResult& ToolResult::image(std::string_view bytes, const std::string& mime) {
    return encodedImage(base64Encode(bytes), mime);
}

ToolResult& ToolResult::encodedImage(const std::string& base64, const std::string& mime) {
    content.push_back({{"type", "image"}, {"data", base64}, {"mimeType", mime}});
    return *this;
}

ToolResult& ToolResult::blob(const std::string& uri, std::string_view bytes,
                             const std::string& mime) {
    Json resource = {{"uri", uri}, {"mimeType", mime}, {"blob", base64Encode(bytes)}};
    content.push_back({{"type", "resource"}, {"resource", std::move(resource)}});
    return *this;
}

Json ToolResult::message() const {
    Json out = {{"content", content}};
    if (is_error) out["isError"] = true;
    return out;
}

ToolResult textResult(std::string_view text) {
    ToolResult result;
    result.text(text);
    return result;
}

ToolResult errorResult(const Error& error) {
    std::string text = "Error " + std::string(errorCodeName(error.code())) + ": " + error.what();
    if (!error.endedReason().empty()) {
        text += " (ended: " + error.endedReason() + ", " + error.endedAt() + ")";
    }
    text += ".";
    for (const FieldError& field : error.fields()) {
        text += "\n- " + field.pointer + ": " + field.reason;
    }
    if (!error.hint().empty()) {
        text += "\n" + error.hint();
    } else if (error.code() == ErrorCode::Gone || error.code() == ErrorCode::SandboxLost) {
        text += "\nOpen a new workspace with workspace_open.";
    }
    if (error.retryAfter()) {
        text += "\nTry again after " + std::to_string(error.retryAfter()->count()) + " s.";
    } else if (errorCodeRetryable(error.code())) {
        text += "\nThe same call may succeed later.";
    }
    ToolResult result = textResult(text);
    result.is_error = true;
    result.failure = error.code();
    return result;
}

Clipped clip(std::string_view bytes, std::size_t cap) {
    Clipped out;
    if (bytes.size() <= cap) {
        out.text = toUtf8(bytes);
        out.head = bytes.size();
        return out;
    }
    const std::string_view head = prefixOf(bytes, cap * 2 / 3);
    const std::string_view tail = suffixOf(bytes, cap - cap * 2 / 3);
    out.head = head.size();
    out.left_out = bytes.size() - head.size() - tail.size();
    out.text = toUtf8(head) + "\n[… " + std::to_string(out.left_out) + " bytes left out …]\n" +
               toUtf8(tail);
    return out;
}

std::string_view prefixOf(std::string_view bytes, std::size_t size) {
    if (bytes.size() <= size) return bytes;
    std::size_t end = size;
    for (int i = 0; i < 3 && end > 0 && continues(bytes[end]); ++i) --end;
    if (end == 0 || continues(bytes[end])) end = size;
    return bytes.substr(0, end);
}

std::optional<std::string> imageType(std::string_view bytes) {
    if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
    if (bytes.starts_with("\xFF\xD8\xFF")) return "image/jpeg";
    if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return "image/gif";
    if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP") {
        return "image/webp";
    }
    return std::nullopt;
}

}  // namespace hearth::mcp
