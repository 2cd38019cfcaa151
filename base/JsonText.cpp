#include "base/JsonText.h"

#include <algorithm>

#include "base/Json.h"

namespace hearth {

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
