#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/tar/Utf8.h"

namespace hearth::agent {

/// A JSON value, small on purpose: the agent reads short requests and writes short answers. Reading
/// is bounded in depth, values and members; asking for what is not there gives a default, never a
/// fault. Text that is not UTF-8 is written with U+FFFD in place of each bad byte.
class Value {
public:
    enum class Kind : std::uint8_t { Null, Bool, Int, Double, String, Array, Object };

    Value() noexcept = default;
    Value(bool v) noexcept : kind_(Kind::Bool), int_(v ? 1 : 0) {}
    Value(int v) noexcept : kind_(Kind::Int), int_(v) {}
    Value(std::int64_t v) noexcept : kind_(Kind::Int), int_(v) {}
    Value(std::uint64_t v) noexcept : kind_(Kind::Int), int_(static_cast<std::int64_t>(v)) {}
    Value(std::string v) noexcept : kind_(Kind::String), text_(std::move(v)) {}
    Value(std::string_view v) : kind_(Kind::String), text_(v) {}
    Value(const char* v) : kind_(Kind::String), text_(v) {}

    static Value object() { return Value(Kind::Object); }
    static Value array() { return Value(Kind::Array); }

    /// False if `text` is not one JSON document within the bounds of the protocol.
    static bool parse(std::string_view text, Value& out);

    Kind kind() const noexcept { return kind_; }
    bool isObject() const noexcept { return kind_ == Kind::Object; }
    bool isString() const noexcept { return kind_ == Kind::String; }

    /// Members of an object, elements of an array; empty for anything else.
    const std::vector<Value>& items() const noexcept { return items_; }
    /// The keys of an object, in the order of items().
    const std::vector<std::string>& keys() const noexcept { return keys_; }

    /// The member, or a null value.
    const Value& operator[](std::string_view key) const noexcept;
    std::string_view text() const noexcept { return text_; }
    std::int64_t integer(std::int64_t otherwise = 0) const noexcept;
    bool boolean(bool otherwise = false) const noexcept;

    /// Adds a member; the key must be new.
    Value& set(std::string_view key, Value value);
    Value& push(Value value);

    std::string dump() const;

private:
    explicit Value(Kind kind) noexcept : kind_(kind) {}
    void write(std::string& out) const;
    friend class ValueParser;

    Kind kind_ = Kind::Null;
    std::int64_t int_ = 0;
    double double_ = 0;
    std::string text_;
    std::vector<Value> items_;
    std::vector<std::string> keys_;
};

using tar::toUtf8;
using tar::utf8Length;

}  // namespace hearth::agent
