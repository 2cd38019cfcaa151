#include "controller/contract/RawMembers.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kEscape = 6;  // of a UTF-16 unit

/// Reads the outline of a JSON text: where its texts, objects and arrays begin and end.
class Outline {
public:
    explicit Outline(std::string_view text) : text_(text) {}

    /// Passes white space and, if it is next, `mark`.
    bool pass(char mark) {
        at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
        const bool found = at_ < text_.size() && text_[at_] == mark;
        if (found) ++at_;
        return found;
    }
    bool atEnd() {
        at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
        return at_ == text_.size();
    }
    /// Passes a value; empty if there is none.
    std::string_view value() {
        if (atEnd()) return {};
        const std::size_t begin = at_;
        std::size_t depth = 0;
        for (bool in_text = false; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (in_text) {
                if (c == '\\') ++at_;
                in_text = c != '"';
            } else if (c == '"') {
                in_text = true;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']')) {
                break;
            } else if (c == '}' || c == ']') {
                --depth;
            }
        }
        at_ = std::min(at_, text_.size());
        const std::size_t last = text_.find_last_not_of(kSpace, at_ - 1);
        return at_ > begin ? text_.substr(begin, last + 1 - begin) : std::string_view();
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// The UTF-16 unit that an escape at the start of `text` writes, if it is half of a pair; else 0.
unsigned surrogateAt(std::string_view text) {
    if (text.size() < kEscape || text[0] != '\\' || text[1] != 'u') return 0;
    unsigned unit = 0;
    for (const char c : text.substr(2, 4)) {
        const auto lower = static_cast<char>(c | 0x20);
        const bool digit = c >= '0' && c <= '9';
        if (!digit && (lower < 'a' || lower > 'f')) return 0;
        unit = unit * 16 + static_cast<unsigned>(digit ? c - '0' : lower - 'a' + 10);
    }
    return unit >= 0xD800 && unit <= 0xDFFF ? unit : 0;
}

std::string withoutLoneSurrogates(std::string_view raw) {
    std::string out;
    while (!raw.empty()) {
        const std::size_t plain = std::min(raw.find('\\'), raw.size());
        out.append(raw.substr(0, plain));
        raw.remove_prefix(plain);
        std::size_t length = 2;  // of any other escape
        if (const unsigned unit = surrogateAt(raw)) {
            const unsigned next = surrogateAt(raw.substr(kEscape));
            const bool pair = unit < 0xDC00 && next >= 0xDC00;
            length = pair ? 2 * kEscape : kEscape;
            if (!pair) out.push_back('\\');
        }
        out.append(raw.substr(0, length));
        raw.remove_prefix(std::min(length, raw.size()));
    }
    return out;
}

}  // namespace

std::optional<std::vector<RawMember>> rawMembers(std::string_view object, std::size_t most) {
    Outline outline(object);
    std::vector<RawMember> members;
    if (!outline.pass('{')) return std::nullopt;
    if (outline.pass('}'))
        return outline.atEnd() ? std::optional(std::move(members)) : std::nullopt;
    do {
        const std::string_view key = outline.value();
        if (members.size() == most || !key.starts_with('"') || !outline.pass(':')) {
            return std::nullopt;
        }
        const std::string_view value = outline.value();
        if (value.empty()) return std::nullopt;
        const ForeignValue name = foreignValue(key, {});
        if (!name.json) return std::nullopt;
        members.push_back({name.json->get<std::string>(), value});
    } while (outline.pass(','));
    const bool whole = outline.pass('}') && outline.atEnd();
    return whole ? std::optional(std::move(members)) : std::nullopt;
}

ForeignValue foreignValue(std::string_view raw, const JsonLimits& limits) {
    const bool plain = raw.find('\\') == std::string_view::npos && isUtf8(raw);
    try {
        return {parseJson(plain ? std::string(raw) : withoutLoneSurrogates(toUtf8(raw)), limits),
                {}};
    } catch (const Error& error) {
        return {std::nullopt, error.what()};
    }
}

}  // namespace hearth::controller
