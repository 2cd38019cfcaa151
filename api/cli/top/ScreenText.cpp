#include "api/cli/top/ScreenText.h"

#include <array>
#include <climits>
#include <clocale>
#include <cuchar>
#include <cwchar>
#include <sstream>

#include "api/command/Console.h"
#include "base/Error.h"
#include "base/JsonText.h"

namespace hearth::cli {
namespace {

/// Calls libc while this thread's locale is UTF-8, whatever the user's is.
template <class Call>
auto inUtf8(const Call& call) {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 == nullptr) throwErrno("newlocale", "C.UTF-8");
    const locale_t before = ::uselocale(utf8);
    const auto result = call();
    ::uselocale(before);
    return result;
}

int widthOf(char32_t point) {
    if (point >= 0x20 && point < 0x7F) return 1;
    return inUtf8([&] { return ::wcwidth(static_cast<wchar_t>(point)); });
}

}  // namespace

std::string utf8Of(char32_t point) {
    std::array<char, MB_LEN_MAX> bytes{};
    std::mbstate_t state{};
    const std::size_t size = inUtf8([&] { return std::c32rtomb(bytes.data(), point, &state); });
    return size <= bytes.size() ? std::string(bytes.data(), size) : "?";
}

std::string cellText(std::string_view foreign) {
    constexpr int kMostMarks = 2;
    const std::string safe = printable(foreign);
    std::string out;
    int marks = kMostMarks;  // none at the beginning: no letter precedes them
    for (std::string_view rest = safe; !rest.empty();) {
        const std::string_view character = firstCharacter(rest);
        rest.remove_prefix(character.size());
        const char32_t point = codePointOf(character);
        const int width = widthOf(point);
        if (width == 0 && marks >= kMostMarks) continue;
        marks = width == 0 ? marks + 1 : 0;
        out += width < 0 ? "?" : character;
    }
    return out;
}

std::size_t columnsOf(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const std::string_view character = firstCharacter(text);
        text.remove_prefix(character.size());
        if (const int width = widthOf(codePointOf(character)); width > 0) {
            columns += static_cast<std::size_t>(width);
        }
    }
    return columns;
}

std::string fitted(std::string_view text, std::size_t columns, bool right) {
    const std::size_t all = columnsOf(text);
    if (all <= columns) {
        const std::string padding(columns - all, ' ');
        return right ? padding + std::string(text) : std::string(text) + padding;
    }
    if (columns == 0) return {};
    std::string out;
    std::size_t left = columns - 1;  // one is for the "…"
    while (true) {
        const std::string_view character = firstCharacter(text);
        if (columnsOf(character) > left) return out + "…" + std::string(left, ' ');
        out += character;
        left -= columnsOf(character);
        text.remove_prefix(character.size());
    }
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
    std::vector<std::string> lines;
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
        if (!line.empty() && columnsOf(line) + 1 + columnsOf(word) > columns) {
            lines.push_back(std::move(line));
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
        if (columnsOf(line) > columns) line = fitted(line, columns);
    }
    if (!line.empty()) lines.push_back(line);
    return lines;
}

}  // namespace hearth::cli
