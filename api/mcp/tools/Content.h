#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/Error.h"

namespace hearth::mcp {

/// The most characters of text one tool result carries: what clients pass to a model unharmed.
constexpr std::size_t kTextCap = 24'000;
/// The most bytes that one tool result has as JSON, on every transport: the Python SDK 2 refuses an
/// event of a stream with more than 1 MiB, and the call ends without an answer.
constexpr std::size_t kResultCap = 900'000;
/// Of it for pictures; the rest is for text, of which a character may be escaped sixfold.
constexpr std::size_t kPicturesCap = 700'000;
/// The largest image that is given as an image, raw.
constexpr std::size_t kImageCap = kPicturesCap / 4 * 3;
/// The most images that one tool result carries.
constexpr std::size_t kImagesCap = 4;

/// A tool's answer: content blocks for the model, and whether it failed.
struct ToolResult {
    Json content = Json::array();
    /// The same as one value, for plain HTTP; null: none. MCP clients do not get it: several show a
    /// model only structuredContent where there is any, and drop text and images.
    Json structured = nullptr;
    bool is_error = false;
    std::optional<ErrorCode> failure = std::nullopt;  ///< of an Error; for the audit log
    /// Ends what the call has made, if its caller cancelled before this was sent; empty: nothing to
    /// end.
    std::function<void()> take_back = {};

    ToolResult& text(std::string_view text);
    ToolResult& image(std::string_view bytes, const std::string& mime);
    /// The same of bytes that are base64 already.
    ToolResult& encodedImage(const std::string& base64, const std::string& mime);
    /// A file's bytes as an embedded resource.
    ToolResult& blob(const std::string& uri, std::string_view bytes, const std::string& mime);
    /// How many bytes of JSON may be added until it has kResultCap.
    std::size_t room() const;
    /// The result object of tools/call. What is over kResultCap is left out, the last first, and a
    /// text says so.
    Json message() const;
};

ToolResult textResult(std::string_view text);
/// A failure in words that tell the model what to do next.
ToolResult errorResult(const Error& error);

/// Text cut to `cap` bytes, head and tail kept; valid UTF-8 whatever the bytes.
struct Clipped {
    std::string text;
    std::size_t head = 0;  ///< raw bytes before the gap
    std::size_t left_out = 0;
};
Clipped clip(std::string_view bytes, std::size_t cap);
/// The longest prefix of at most `size` bytes that ends between two characters.
std::string_view prefixOf(std::string_view bytes, std::size_t size);

/// The media type of an image by its first bytes; nullopt if it is none that clients show.
std::optional<std::string> imageType(std::string_view bytes);

}  // namespace hearth::mcp
