#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/Error.h"

namespace hearth::mcp {

/// The most characters of text in one tool result: clients pass that much to a model unchanged.
constexpr std::size_t kTextCap = 24'000;
/// The most bytes of one tool result as JSON, on every transport: the Python SDK 2 refuses a stream
/// event of more than 1 MiB, and the call ends without an answer.
constexpr std::size_t kResultCap = 900'000;
/// The part of it for pictures; the rest is for text, where escapes may take six bytes a character.
constexpr std::size_t kPicturesCap = 700'000;
/// The largest image that is given as an image, in bytes before base64.
constexpr std::size_t kImageCap = kPicturesCap / 4 * 3;
/// The most images that one tool result carries.
constexpr std::size_t kImagesCap = 4;

/// A tool's answer: content blocks for the model, and whether it failed.
struct ToolResult {
    Json content = Json::array();
    /// The same as one value, for plain HTTP; null: none. MCP clients do not get it: several show a
    /// model only structuredContent if there is any, and drop text and images.
    Json structured = nullptr;
    bool is_error = false;
    std::optional<ErrorCode> failure = std::nullopt;  ///< an Error's code; for the audit log
    /// Ends things that the call made, if its caller cancelled before this was sent; empty: no
    /// such things.
    std::function<void()> take_back = {};

    ToolResult& text(std::string_view text);
    ToolResult& image(std::string_view bytes, const std::string& mime);
    /// The same for bytes that are base64 already.
    ToolResult& encodedImage(const std::string& base64, const std::string& mime);
    /// A file's bytes as an embedded resource.
    ToolResult& blob(const std::string& uri, std::string_view bytes, const std::string& mime);
    /// Returns how many bytes of JSON may be added before kResultCap is reached.
    std::size_t room() const;
    /// Returns the result object of tools/call. Content over kResultCap is left out, the last block
    /// first, and a text says so.
    Json message() const;
};

ToolResult textResult(std::string_view text);
/// Returns a failure in words that tell the model what to do next.
ToolResult errorResult(const Error& error);
/// Returns the error with the next step as its hint, if it is NOT_FOUND and has none. Names
/// Hearth's own tools.
Error withNextStep(Error error);

/// Text cut to `cap` bytes, head and tail kept; valid UTF-8 for any bytes.
struct Clipped {
    std::string text;
    std::size_t head = 0;  ///< raw bytes before the gap
    std::size_t left_out = 0;
};
Clipped clip(std::string_view bytes, std::size_t cap);
/// Returns the longest prefix of at most `size` bytes that ends between two characters.
std::string_view prefixOf(std::string_view bytes, std::size_t size);

/// Returns an image's media type by its first bytes; nullopt if clients do not show that type.
std::optional<std::string> imageType(std::string_view bytes);

}  // namespace hearth::mcp
