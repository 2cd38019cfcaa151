#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/tar/Utf8.h"

namespace hearth::agent {

/// A JSON value, small on purpose: the agent reads short requests and writes short answers. Reading
/// is bounded in depth, values and members; a missing member gives a default, never a fault. Text
/// that is not UTF-8 is written with U+FFFD in place of each bad byte.
class JsonValue {
public:
    enum class Kind : std::uint8_t { Null, Bool, Int, Double, String, Array, Object };

    JsonValue() noexcept = default;
    JsonValue(bool v) noexcept : kind_(Kind::Bool), int_(v ? 1 : 0) {}
    JsonValue(int v) noexcept : kind_(Kind::Int), int_(v) {}
    JsonValue(std::int64_t v) noexcept : kind_(Kind::Int), int_(v) {}
    JsonValue(std::uint64_t v) noexcept : kind_(Kind::Int), int_(static_cast<std::int64_t>(v)) {}
    JsonValue(std::string v) noexcept : kind_(Kind::String), text_(std::move(v)) {}
    JsonValue(std::string_view v) : kind_(Kind::String), text_(v) {}
    JsonValue(const char* v) : kind_(Kind::String), text_(v) {}

    static JsonValue object() { return JsonValue(Kind::Object); }
    static JsonValue array() { return JsonValue(Kind::Array); }

    /// False if `text` is not one JSON document within the bounds of the protocol.
    static bool parse(std::string_view text, JsonValue& out);

    Kind kind() const noexcept { return kind_; }
    bool isObject() const noexcept { return kind_ == Kind::Object; }
    bool isString() const noexcept { return kind_ == Kind::String; }

    /// Members of an object, elements of an array; empty for anything else.
    const std::vector<JsonValue>& items() const noexcept { return items_; }
    /// The keys of an object, in the order of items().
    const std::vector<std::string>& keys() const noexcept { return keys_; }

    /// The member, or a null value.
    const JsonValue& operator[](std::string_view key) const noexcept;
    std::string_view text() const noexcept { return text_; }
    std::int64_t integer(std::int64_t otherwise = 0) const noexcept;
    bool boolean(bool otherwise = false) const noexcept;

    /// Adds a member; the key must be new.
    JsonValue& set(std::string_view key, JsonValue value);
    JsonValue& push(JsonValue value);

    std::string dump() const;

private:
    explicit JsonValue(Kind kind) noexcept : kind_(kind) {}
    void write(std::string& out) const;
    friend class ValueParser;

    Kind kind_ = Kind::Null;
    std::int64_t int_ = 0;
    double double_ = 0;
    std::string text_;
    std::vector<JsonValue> items_;
    std::vector<std::string> keys_;
};

using tar::toUtf8;
using tar::utf8Length;

}  // namespace hearth::agent
