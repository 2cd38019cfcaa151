#include "controller/egress/credentials/Spelling.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/http/Url.h"

namespace hearth::egress {
namespace {

constexpr unsigned kMostAscii = 0x7E;
constexpr std::size_t kMostDigits = 8;
constexpr std::size_t kCssDigits = 6;
constexpr std::size_t kOctalDigits = 3;

constexpr std::array<std::pair<std::string_view, char>, 39> kEntities{{
    {"amp", '&'},    {"lt", '<'},       {"gt", '>'},       {"quot", '"'},   {"apos", '\''},
    {"excl", '!'},   {"num", '#'},      {"dollar", '$'},   {"percnt", '%'}, {"lpar", '('},
    {"rpar", ')'},   {"ast", '*'},      {"midast", '*'},   {"plus", '+'},   {"comma", ','},
    {"period", '.'}, {"sol", '/'},      {"colon", ':'},    {"semi", ';'},   {"equals", '='},
    {"quest", '?'},  {"commat", '@'},   {"lsqb", '['},     {"lbrack", '['}, {"bsol", '\\'},
    {"rsqb", ']'},   {"rbrack", ']'},   {"Hat", '^'},      {"lowbar", '_'}, {"grave", '`'},
    {"lcub", '{'},   {"lbrace", '{'},   {"verbar", '|'},   {"vert", '|'},   {"rcub", '}'},
    {"rbrace", '}'}, {"NewLine", '\n'}, {"UnderBar", '_'}, {"shy", '\n'},
}};
/// HTML also accepts these without their semicolon.
constexpr std::size_t kBareEntities = 4;
constexpr std::array<std::string_view, 4> kHtmlBreaks{"<br>", "<br/>", "<br />", "<wbr>"};
/// Characters that may break a text without a visible mark, in UTF-8: next line, soft hyphen,
/// spaces and joiners of no width, line and paragraph separators, marks of direction, invisible
/// signs of mathematics, byte order mark.
constexpr std::array<std::pair<std::string_view, unsigned>, 17> kUnseen{{{"\xC2\x85", 0x85},
                                                                         {"\xCD\x8F", 0x34F},
                                                                         {"\xD8\x9C", 0x61C},
                                                                         {"\xE1\xA0\x8E", 0x180E},
                                                                         {"\xE2\x80\x8E", 0x200E},
                                                                         {"\xE2\x80\x8F", 0x200F},
                                                                         {"\xE2\x81\xA1", 0x2061},
                                                                         {"\xE2\x81\xA2", 0x2062},
                                                                         {"\xE2\x81\xA3", 0x2063},
                                                                         {"\xC2\xAD", 0xAD},
                                                                         {"\xE2\x80\x8B", 0x200B},
                                                                         {"\xE2\x80\x8C", 0x200C},
                                                                         {"\xE2\x80\x8D", 0x200D},
                                                                         {"\xE2\x80\xA8", 0x2028},
                                                                         {"\xE2\x80\xA9", 0x2029},
                                                                         {"\xE2\x81\xA0", 0x2060},
                                                                         {"\xEF\xBB\xBF", 0xFEFF}}};

bool isPrintable(char c) {
    return c >= 0x20 && c <= 0x7E;
}
bool isLineEnd(char c) {
    return c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
/// True for a code point that stands for no character.
bool isBreak(unsigned value) {
    return (value < 0x20 && isLineEnd(static_cast<char>(value))) ||
           std::any_of(kUnseen.begin(), kUnseen.end(),
                       [value](const auto& unseen) { return unseen.second == value; });
}

/// Reads the whole text as a number of at most `most` digits.
std::optional<unsigned> number(std::string_view digits, int base, std::size_t most = kMostDigits) {
    if (digits.empty() || digits.size() > most) return std::nullopt;
    unsigned value = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, value, base);
    if (error != std::errc{} || end != last) return std::nullopt;
    return value;
}

std::optional<unsigned> exactly(std::string_view digits, std::size_t count) {
    return digits.size() == count ? number(digits, 16) : std::nullopt;
}

/// The text after `&`.
std::optional<unsigned> entity(std::string_view body) {
    const bool closed = body.ends_with(';');
    if (closed) body.remove_suffix(1);
    if (body.starts_with("#x") || body.starts_with("#X")) return number(body.substr(2), 16);
    if (body.starts_with('#')) return number(body.substr(1), 10);
    // Called for each byte after a &: most of them end no name.
    if (!closed && !body.ends_with('p') && !body.ends_with('t') && !body.ends_with('P') &&
        !body.ends_with('T')) {
        return std::nullopt;
    }
    const auto* const end = kEntities.begin() + (closed ? kEntities.size() : kBareEntities);
    const auto* const found = std::find_if(kEntities.begin(), end, [&](const auto& known) {
        return equalsIgnoreCase(known.first, body);
    });
    if (found == end) return std::nullopt;
    return static_cast<unsigned>(found->second);
}

/// The text after `%`.
std::optional<unsigned> percent(std::string_view body) {
    const bool wide = body.starts_with('u') || body.starts_with('U');
    return wide ? exactly(body.substr(1), 4) : exactly(body, 2);
}

/// The text after a backslash that begins with a letter.
std::optional<unsigned> lettered(std::string_view body) {
    const bool x = body[0] == 'x' || body[0] == 'X';
    const bool u = body[0] == 'u' || body[0] == 'U';
    if (!x && !u) return std::nullopt;
    std::string_view digits = body.substr(1);
    if (digits.starts_with('{') && digits.ends_with('}')) {
        return number(digits.substr(1, digits.size() - 2), 16);
    }
    if (x) return number(digits, 16);
    const auto four = exactly(digits, 4);
    return four ? four : exactly(digits, kMostDigits);
}

/// The readings that end at one place.
class Reading {
public:
    Reading(std::string_view text, std::size_t end, std::vector<Spelling>& out)
        : text_(text), end_(end), out_(out) {}

    void plain() {
        const char c = text_[end_ - 1];
        if (isPrintable(c)) character(1, static_cast<unsigned char>(c));
        if (c == '+') character(1, ' ');
        if (c == '\0') character(1, '\n');
        if (isLineEnd(c)) {
            character(1, '\n');
            if (before(1, '=') || before(1, '\\')) character(2, '\n');
        }
        if ((c == ' ' || c == '\t') && isIndent()) character(1, '\n');
        if (c == '>') htmlBreak();
        if (static_cast<unsigned char>(c) >= 0x80) unseen();
    }

    void escaped() {
        const std::size_t first = end_ - std::min(end_, kLongestSpelling);
        // The body of an escape is printable.
        for (std::size_t at = end_ - 1; at > first && isPrintable(text_[at]); --at) {
            const std::string_view body = text_.substr(at, end_ - at);
            switch (text_[at - 1]) {
                case '%':
                    add(body, percent(body));
                    break;
                case '=':
                    add(body, exactly(body, 2));
                    break;
                case '&':
                    add(body, entity(body));
                    break;
                case '\\':
                    backslashed(body);
                    break;
                default:
                    break;
            }
        }
    }

private:
    bool before(std::size_t length, char c) const {
        return end_ > length && text_[end_ - 1 - length] == c;
    }

    /// Adds a break or a character. A break counts as one in any spelling.
    void character(std::size_t length, unsigned value) {
        if (isBreak(value)) {
            out_.push_back({end_ - length, end_, 0});
        } else if (value >= 0x20 && value <= kMostAscii) {
            out_.push_back({end_ - length, end_, static_cast<unsigned char>(value)});
        }
    }

    void add(std::string_view body, std::optional<unsigned> value) {
        if (value) character(body.size() + 1, *value);
    }

    void backslashed(std::string_view body) {
        if (body.size() == 1) {
            character(2, static_cast<unsigned char>(body[0]));
            if (body[0] == 'n' || body[0] == 'r') character(2, '\n');
        }
        const std::size_t octal = kOctalDigits + (body[0] == '0' ? 1 : 0);
        add(body, number(body, 8, octal));
        add(body, lettered(body));
        // In CSS a blank may end the escape.
        std::string_view digits = body;
        if (digits.ends_with(' ')) digits.remove_suffix(1);
        add(body, number(digits, 16, kCssDigits));
    }

    bool isIndent() const {
        for (std::size_t back = 1; back <= kLongestIndent && back < end_; ++back) {
            const char c = text_[end_ - 1 - back];
            if (isLineEnd(c)) return true;
            if (c != ' ' && c != '\t') return false;
        }
        return false;
    }

    void htmlBreak() {
        for (const std::string_view tag : kHtmlBreaks) {
            if (tag.size() <= end_ &&
                equalsIgnoreCase(text_.substr(end_ - tag.size(), tag.size()), tag)) {
                character(tag.size(), '\n');
            }
        }
    }

    void unseen() {
        for (const auto& [bytes, value] : kUnseen) {
            if (text_.substr(0, end_).ends_with(bytes)) character(bytes.size(), value);
        }
    }

    const std::string_view text_;
    const std::size_t end_;
    std::vector<Spelling>& out_;
};

}  // namespace

void addSpellings(std::string_view text, std::size_t end, std::vector<Spelling>& out) {
    Reading reading(text, end, out);
    reading.plain();
    reading.escaped();
}

}  // namespace hearth::egress
