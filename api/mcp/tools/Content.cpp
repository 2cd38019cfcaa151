#include "api/mcp/tools/Content.h"

#include <algorithm>
#include <array>

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

constexpr std::size_t kRoomForWords = 200;

/// The words of an error by which the services say that a thing is unknown, and the next step.
struct NextStep {
    std::string_view words;
    std::string_view step;
};
constexpr std::array<NextStep, 4> kNextSteps{{
    {"no workspace ", "workspace_list shows your workspaces, and workspace_open opens a new one."},
    {"no execution ", "Take the run_id from the result of run or packages."},
    {"no context ", "run makes a context when its name is used for the first time."},
    {"no such file", "file_get with path \".\" lists the workspace's files."},
}};

/// Returns the size as JSON. Base64 is not serialized, because nothing in it is escaped.
std::size_t sizeOf(const Json& value) {
    if (!value.is_structured()) return dumpJson(value).size();
    std::size_t size = 2;
    for (const auto& [key, member] : value.items()) {
        const bool base64 = key == "data" || key == "blob";
        size += key.size() + 4 +
                (base64 ? member.get_ref<const std::string&>().size() : sizeOf(member));
    }
    return size;
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

std::size_t ToolResult::room() const {
    const std::size_t used = sizeOf(content);
    return kResultCap - std::min(used, kResultCap);
}

Json ToolResult::message() const {
    Json fitting = content;
    for (std::size_t i = fitting.size(); i > 0 && sizeOf(fitting) > kResultCap; --i) {
        Json& block = fitting[i - 1];
        const std::size_t size = sizeOf(block);
        const std::size_t over = sizeOf(fitting) - kResultCap;
        if (block.at("type") != "text") {
            block = {
                {"type", "text"},
                {"text", "[" + block.at("type").get<std::string>() + " of " + std::to_string(size) +
                             " bytes left out: the result would be too large]"}};
            continue;
        }
        const auto& text = block.at("text").get_ref<const std::string&>();
        // Each character left out frees at least one byte; the rest is for the note about the cut.
        const std::size_t less = std::min(text.size(), over + kRoomForWords);
        block = {{"type", "text"}, {"text", clip(text, text.size() - less).text}};
    }
    Json out = {{"content", std::move(fitting)}};
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

Error withNextStep(Error error) {
    if (error.code() != ErrorCode::NotFound || !error.hint().empty()) return error;
    const std::string_view text = error.what();
    for (const NextStep& one : kNextSteps) {
        if (text.find(one.words) == std::string_view::npos) continue;
        error.hint(std::string(one.step));
        break;
    }
    return error;
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
