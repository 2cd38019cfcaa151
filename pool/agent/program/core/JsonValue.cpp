#include "pool/agent/program/core/JsonValue.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace hearth::agent {

namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxValues = 16'384;
constexpr std::size_t kMaxMembers = 1'024;

const JsonValue kNull;

void appendUtf8(std::string& out, std::uint32_t c) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0U | (c >> 6U));
        put(0x80U | (c & 0x3FU));
    } else if (c < 0x10000) {
        put(0xE0U | (c >> 12U));
        put(0x80U | ((c >> 6U) & 0x3FU));
        put(0x80U | (c & 0x3FU));
    } else {
        put(0xF0U | (c >> 18U));
        put(0x80U | ((c >> 12U) & 0x3FU));
        put(0x80U | ((c >> 6U) & 0x3FU));
        put(0x80U | (c & 0x3FU));
    }
}

void writeText(std::string& out, std::string_view text) {
    out.push_back('"');
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text.front());
        const std::size_t length = utf8Length(text);
        if (length == 0) {
            out += "\xEF\xBF\xBD";
            text.remove_prefix(1);
            continue;
        }
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(static_cast<char>(c));
        } else if (c < 0x20 || c == 0x7F) {
            char escaped[8];
            std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
            out += escaped;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
    }
    out.push_back('"');
}

}  // namespace

/// Recursive descent; depth is bounded, so the stack is.
class ValueParser {
public:
    explicit ValueParser(std::string_view text) : text_(text) {}

    bool document(JsonValue& out) {
        if (!value(out, 0)) return false;
        space();
        return at_ == text_.size();
    }

private:
    void space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t')) {
            ++at_;
        }
    }
    bool take(char c) {
        space();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }

    bool value(JsonValue& out, int depth) {
        if (depth > kMaxDepth || ++values_ > kMaxValues) return false;
        space();
        if (at_ >= text_.size()) return false;
        switch (text_[at_]) {
            case '{':
                return object(out, depth);
            case '[':
                return array(out, depth);
            case '"':
                out = JsonValue(JsonValue::Kind::String);
                return string(out.text_);
            case 't':
                out = JsonValue(true);
                return word("true");
            case 'f':
                out = JsonValue(false);
                return word("false");
            case 'n':
                out = JsonValue();
                return word("null");
            default:
                return number(out);
        }
    }

    bool object(JsonValue& out, int depth) {
        out = JsonValue::object();
        ++at_;
        if (take('}')) return true;
        do {
            space();
            std::string key;
            if (at_ >= text_.size() || text_[at_] != '"' || !string(key)) return false;
            if (out.keys_.size() >= kMaxMembers) return false;
            for (const std::string& known : out.keys_) {
                if (known == key) return false;
            }
            if (!take(':')) return false;
            JsonValue member;
            if (!value(member, depth + 1)) return false;
            out.keys_.push_back(std::move(key));
            out.items_.push_back(std::move(member));
        } while (take(','));
        return take('}');
    }

    bool array(JsonValue& out, int depth) {
        out = JsonValue::array();
        ++at_;
        if (take(']')) return true;
        do {
            JsonValue element;
            if (!value(element, depth + 1)) return false;
            out.items_.push_back(std::move(element));
        } while (take(','));
        return take(']');
    }

    bool number(JsonValue& out) {
        const std::size_t begin = at_;
        bool whole = true;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '.' || c == 'e' || c == 'E' || c == '+') {
                whole = false;
            } else if (c != '-' && (c < '0' || c > '9')) {
                break;
            }
            ++at_;
        }
        const std::string digits(text_.substr(begin, at_ - begin));
        if (digits.empty() || digits.size() > 64) return false;
        if (whole) {
            std::int64_t v = 0;
            const auto [end, error] =
                std::from_chars(digits.data(), digits.data() + digits.size(), v);
            if (error == std::errc() && end == digits.data() + digits.size()) {
                out = JsonValue(v);
                return true;
            }
        }
        char* end = nullptr;
        out = JsonValue(JsonValue::Kind::Double);
        out.double_ = std::strtod(digits.c_str(), &end);
        const bool finite = out.double_ <= 1.7e308 && out.double_ >= -1.7e308;
        return finite && end == digits.c_str() + digits.size();
    }

    bool hex4(std::uint32_t& out) {
        if (text_.size() - at_ < 4) return false;
        const auto [end, error] =
            std::from_chars(text_.data() + at_, text_.data() + at_ + 4, out, 16);
        if (error != std::errc() || end != text_.data() + at_ + 4) return false;
        at_ += 4;
        return true;
    }

    bool escape(std::string& out) {
        if (at_ >= text_.size()) return false;
        static constexpr std::string_view kFrom = "\"\\/bfnrt";
        static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
        const char c = text_[at_++];
        if (const std::size_t i = kFrom.find(c); i != std::string_view::npos) {
            out.push_back(kTo[i]);
            return true;
        }
        std::uint32_t code = 0;
        if (c != 'u' || !hex4(code)) return false;
        if (code >= 0xDC00 && code <= 0xDFFF) return false;
        if (code >= 0xD800 && code <= 0xDBFF) {
            std::uint32_t low = 0;
            if (!word("\\u") || !hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
            code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        }
        appendUtf8(out, code);
        return true;
    }

    bool string(std::string& out) {
        ++at_;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"') {
                ++at_;
                return true;
            }
            if (static_cast<unsigned char>(c) < 0x20) return false;
            if (c == '\\') {
                ++at_;
                if (!escape(out)) return false;
                continue;
            }
            const std::size_t length = utf8Length(text_.substr(at_));
            if (length == 0) return false;
            out.append(text_.substr(at_, length));
            at_ += length;
        }
        return false;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t values_ = 0;
};

bool JsonValue::parse(std::string_view text, JsonValue& out) {
    return ValueParser(text).document(out);
}

const JsonValue& JsonValue::operator[](std::string_view key) const noexcept {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        if (keys_[i] == key) return items_[i];
    }
    return kNull;
}

std::int64_t JsonValue::integer(std::int64_t otherwise) const noexcept {
    return kind_ == Kind::Int ? int_ : otherwise;
}

bool JsonValue::boolean(bool otherwise) const noexcept {
    return kind_ == Kind::Bool ? int_ != 0 : otherwise;
}

JsonValue& JsonValue::set(std::string_view key, JsonValue value) {
    keys_.emplace_back(key);
    items_.push_back(std::move(value));
    return *this;
}

JsonValue& JsonValue::push(JsonValue value) {
    items_.push_back(std::move(value));
    return *this;
}

std::string JsonValue::dump() const {
    std::string out;
    write(out);
    return out;
}

void JsonValue::write(std::string& out) const {
    char number[40];
    switch (kind_) {
        case Kind::Null:
            out += "null";
            return;
        case Kind::Bool:
            out += int_ != 0 ? "true" : "false";
            return;
        case Kind::Int:
            out.append(number, std::to_chars(number, number + sizeof(number), int_).ptr);
            return;
        case Kind::Double:
            std::snprintf(number, sizeof(number), "%.17g", double_);
            out += number;
            return;
        case Kind::String:
            writeText(out, text_);
            return;
        case Kind::Array:
        case Kind::Object:
            break;
    }
    const bool named = kind_ == Kind::Object;
    out.push_back(named ? '{' : '[');
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (i > 0) out.push_back(',');
        if (named) {
            writeText(out, keys_[i]);
            out.push_back(':');
        }
        items_[i].write(out);
    }
    out.push_back(named ? '}' : ']');
}

}  // namespace hearth::agent
