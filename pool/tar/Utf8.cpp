#include "pool/tar/Utf8.h"

namespace hearth::tar {

std::size_t utf8Length(std::string_view bytes) noexcept {
    if (bytes.empty()) return 0;
    const auto at = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned c = at(0);
    if (c < 0x80) return 1;
    const std::size_t length = c >= 0xC2 && c <= 0xDF   ? 2
                               : (c & 0xF0U) == 0xE0    ? 3
                               : c >= 0xF0 && c <= 0xF4 ? 4
                                                        : 0;
    if (length == 0 || bytes.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((at(i) & 0xC0U) != 0x80) return 0;
    }
    const unsigned second = at(1);
    if (c == 0xE0 && second < 0xA0) return 0;
    if (c == 0xED && second > 0x9F) return 0;  // surrogates
    if (c == 0xF0 && second < 0x90) return 0;
    if (c == 0xF4 && second > 0x8F) return 0;
    return length;
}

std::string toUtf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t length = utf8Length(bytes);
        if (length == 0) {
            out += "\xEF\xBF\xBD";
            bytes.remove_prefix(1);
        } else {
            out.append(bytes.substr(0, length));
            bytes.remove_prefix(length);
        }
    }
    return out;
}

}  // namespace hearth::tar
