#include "controller/egress/credentials/AnswerCharset.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/http/Url.h"

namespace hearth::egress {
namespace {

constexpr std::string_view kCharset = "charset";
constexpr std::size_t kMostShown = 40;

/// Whole names, in lower case and without punctuation.
constexpr std::array<std::string_view, 27> kSupersets{
    "utf8",  "usascii", "ascii",      "ansix341968", "iso646us", "binary",    "macintosh",
    "koi8r", "koi8u",   "koi8ru",     "tis620",      "eucjp",    "euckr",     "euccn",
    "euctw", "gb2312",  "gbk",        "gb18030",     "big5",     "big5hkscs", "ksc56011987",
    "uhc",   "cp949",   "windows949", "windows31j",  "cp932",    "cp936"};
/// Prefixes before a number: the part of ISO 8859, or the end of a code page's number.
constexpr std::array<std::string_view, 6> kNumbered{"iso8859", "latin",  "windows125",
                                                    "cp125",   "xcp125", "windows87"};

std::string plainName(std::string_view name) {
    std::string out = toLower(name);
    std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == '.'; });
    return out;
}

bool isSupersetOfAscii(std::string_view name) {
    const std::string plain = plainName(name);
    if (std::find(kSupersets.begin(), kSupersets.end(), plain) != kSupersets.end()) return true;
    return std::any_of(kNumbered.begin(), kNumbered.end(), [&](std::string_view family) {
        const std::string_view rest =
            std::string_view(plain).substr(std::min(family.size(), plain.size()));
        return plain.starts_with(family) && !rest.empty() && rest.size() <= 2 &&
               rest.find_first_not_of("0123456789") == std::string_view::npos;
    });
}

std::size_t countOf(std::string_view text, std::string_view word) {
    std::size_t n = 0;
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + word.size())) {
        ++n;
    }
    return n;
}

/// Splits at separators outside quoted strings; nullopt if a quoted string stays open.
std::optional<std::vector<std::string_view>> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (quoted && text[at] == '\\') {
            ++at;
        } else if (text[at] == '"') {
            quoted = !quoted;
        } else if (!quoted && text[at] == separator) {
            parts.push_back(text.substr(begin, at - begin));
            begin = at + 1;
        }
    }
    if (quoted) return std::nullopt;
    parts.push_back(text.substr(begin));
    return parts;
}

/// The value of a parameter "charset=value"; nullopt for any other parameter.
std::optional<std::string_view> charsetOf(std::string_view parameter) {
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos ||
        !equalsIgnoreCase(trim(parameter.substr(0, equals)), kCharset)) {
        return std::nullopt;
    }
    return trim(parameter.substr(equals + 1));
}

std::string_view unquoted(std::string_view value) {
    for (const char quote : {'"', '\''}) {
        if (value.size() > 1 && value.front() == quote && value.back() == quote) {
            return value.substr(1, value.size() - 2);
        }
    }
    return value;
}

std::string shown(std::string_view text) {
    std::string out(text.substr(0, kMostShown));
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
    return out;
}

}  // namespace

std::optional<std::string> unreadableCharset(std::string_view content_type) {
    const std::size_t named = countOf(toLower(content_type), kCharset);
    if (named == 0) return std::nullopt;
    // Some clients end a field at a comma, others do not.
    const auto parameters = split(content_type, ';');
    std::size_t read = 0;
    for (std::size_t i = 1; parameters && i < parameters->size(); ++i) {
        const auto charset = charsetOf((*parameters)[i]);
        if (!charset) continue;
        ++read;
        if (!isSupersetOfAscii(unquoted(*charset))) return shown(*charset);
    }
    return read == named ? std::nullopt : std::optional(shown(content_type));
}

bool beginsUnreadable(std::string_view body) noexcept {
    using namespace std::string_view_literals;
    const bool utf7 = body.starts_with("+/v"sv) && body.size() > 3 &&
                      "89+/"sv.find(body[3]) != std::string_view::npos;
    // The marks of UTF-32 hold zeros; the little-endian one begins with UTF-16's mark.
    return utf7 || body.starts_with("\xFE\xFF"sv) || body.starts_with("\xFF\xFE"sv) ||
           body.starts_with("\0\0\xFE\xFF"sv) || body.starts_with("\x4C\x6F\xA7\x94"sv);
}

std::string withoutCharset(std::string_view accept) {
    const auto ranges = split(accept, ',');
    if (!ranges) return {};
    std::string out;
    for (const std::string_view range : *ranges) {
        const auto parameters = split(range, ';');
        if (!parameters) return {};
        std::string kept;
        for (const std::string_view parameter : *parameters) {
            const std::string_view name = trim(parameter.substr(0, parameter.find('=')));
            if (toLower(name).starts_with(kCharset)) continue;  // charset* of RFC 8187 as well
            kept += (kept.empty() ? "" : ";") + std::string(parameter);
        }
        out += (out.empty() ? "" : ",") + kept;
    }
    return out;
}

}  // namespace hearth::egress
