#include "api/cli/top/ScreenText.h"

#include <cwchar>

#include "api/command/Console.h"
#include "base/Error.h"
#include "base/JsonText.h"

namespace hearth::cli {
namespace {

int widthOf(char32_t point) {
    if (point >= 0x20 && point < 0x7F) return 1;
    return ::wcwidth(static_cast<wchar_t>(point));
}

}  // namespace

Utf8Locale::Utf8Locale() : mine_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (mine_ == nullptr) throwErrno("newlocale", "C.UTF-8");
    before_ = ::uselocale(mine_);
}

Utf8Locale::~Utf8Locale() {
    ::uselocale(before_);
    ::freelocale(mine_);
}

std::string utf8Of(char32_t point) {
    std::string out;
    const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0U | point >> 6U);
        put(0x80U | (point & 0x3FU));
    } else if (point < 0x10000) {
        put(0xE0U | point >> 12U);
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    } else {
        put(0xF0U | point >> 18U);
        put(0x80U | (point >> 12U & 0x3FU));
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    }
    return out;
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
    std::size_t used = 0;
    while (true) {
        const std::string_view character = firstCharacter(text);
        const std::size_t width = columnsOf(character);
        if (used + width + 1 > columns) break;
        out += character;
        used += width;
        text.remove_prefix(character.size());
    }
    return out + "…" + std::string(columns - used - 1, ' ');
}

}  // namespace hearth::cli
