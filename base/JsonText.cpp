#include "base/JsonText.h"

#include <algorithm>
#include <array>

#include "base/Json.h"

namespace hearth {
namespace {

struct CodePoints {
    char32_t first;
    char32_t last;
};
/// In rising order. Marks are left out: they change a letter that is seen.
constexpr std::array<CodePoints, 26> kUnseen{
    {{0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},
     {0x061C, 0x061C},   {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
     {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0x2800, 0x2800},
     {0x3164, 0x3164},   {0xE000, 0xF8FF},   {0xFDD0, 0xFDEF},   {0xFE00, 0xFE0F},
     {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},
     {0x13430, 0x1345F}, {0x1BCA0, 0x1BCA3}, {0x1D159, 0x1D159}, {0x1D173, 0x1D17A},
     {0xE0000, 0xE0FFF}, {0xF0000, 0x10FFFF}}};

void appendUnit(std::string& out, char32_t unit) {
    constexpr const char* kDigits = "0123456789abcdef";
    out.append("\\u");
    for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kDigits[unit >> shift & 15U]);
}

}  // namespace

std::string_view firstCharacter(std::string_view text) {
    if (text.empty()) return text;
    std::size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
    return text.substr(0, size);
}

char32_t codePointOf(std::string_view character) {
    if (character.empty()) return 0;
    const auto first = static_cast<unsigned char>(character[0]);
    char32_t point = first;
    if (character.size() == 2) point = first & 0x1FU;
    if (character.size() == 3) point = first & 0x0FU;
    if (character.size() == 4) point = first & 0x07U;
    for (const char byte : character.substr(1)) {
        point = point << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
    }
    return point;
}

std::size_t unseenAt(std::string_view text) {
    if (text.empty()) return 0;
    const auto first = static_cast<unsigned char>(text[0]);
    if (first >= 0x20U && first < 0x7FU) return 0;
    const std::string_view character = firstCharacter(text);
    if (!isUtf8(character)) return 0;
    const char32_t point = codePointOf(character);
    const auto range = std::ranges::lower_bound(kUnseen, point, {}, &CodePoints::last);
    return range != kUnseen.end() && range->first <= point ? character.size() : 0;
}

void appendEscape(std::string& out, char32_t point) {
    if (point < 0x10000) return appendUnit(out, point);
    appendUnit(out, 0xD800 + ((point - 0x10000) >> 10U));
    appendUnit(out, 0xDC00 + ((point - 0x10000) & 0x3FFU));
}

void appendJsonText(std::string& out, std::string_view bytes) {
    constexpr std::string_view kShortNames = "\"\"\\\\\bb\ff\nn\rr\tt";  // character, letter
    constexpr const char* kDigits = "0123456789abcdef";
    const auto plain = [](char c) {
        return c != '"' && c != '\\' && static_cast<unsigned char>(c) - 0x20U < 0x60U;
    };
    while (!bytes.empty()) {
        const auto* stop = std::find_if_not(bytes.begin(), bytes.end(), plain);
        out.append(bytes.begin(), stop);
        bytes.remove_prefix(static_cast<std::size_t>(stop - bytes.begin()));
        if (bytes.empty()) return;
        const char first = bytes.front();
        if (static_cast<unsigned char>(first) < 0x80U) {
            out.push_back('\\');
            std::size_t at = 0;
            while (at < kShortNames.size() && kShortNames[at] != first) at += 2;
            if (at < kShortNames.size()) {
                out.push_back(kShortNames[at + 1]);
            } else {
                const auto code = static_cast<unsigned char>(first);
                out.append("u00").append({kDigits[code >> 4U], kDigits[code & 15U]});
            }
            bytes.remove_prefix(1);
            continue;
        }
        const auto* ascii = std::find_if(bytes.begin(), bytes.end(), [](char c) {
            return static_cast<unsigned char>(c) < 0x80U;
        });
        // An ASCII byte never stands inside a longer character.
        const auto length = static_cast<std::size_t>(ascii - bytes.begin());
        out.append(toUtf8(bytes.substr(0, length)));
        bytes.remove_prefix(length);
    }
}

}  // namespace hearth
