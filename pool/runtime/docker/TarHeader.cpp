#include "pool/runtime/docker/TarHeader.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kBlock = 512;

}  // namespace

std::uint64_t tarPadding(std::uint64_t bytes) {
    return (kBlock - bytes % kBlock) % kBlock;
}

std::string tarEnd() {
    return std::string(2 * kBlock, '\0');
}

std::string tarHeader(const TarEntry& entry) {
    std::string block(kBlock, '\0');
    const auto put = [&](std::size_t at, std::string_view text) {
        std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(0, std::string_view(entry.name).substr(0, 99));
    char octal[13];
    std::snprintf(octal, sizeof octal, "%07o", entry.mode & 07777U);
    put(100, octal);
    put(108, "0000000");
    put(116, "0000000");
    if (entry.size < (1ULL << 33U)) {
        std::snprintf(octal, sizeof octal, "%011llo", static_cast<unsigned long long>(entry.size));
        put(124, octal);
    } else {
        block[124] = static_cast<char>(0x80);
        for (unsigned i = 0; i < 8; ++i) {
            block[135 - i] = static_cast<char>(entry.size >> (8 * i) & 0xFFU);
        }
    }
    put(136, "00000000000");
    put(148, "        ");
    block[156] = entry.folder ? '5' : '0';
    put(257, std::string_view("ustar\0"
                              "00",
                              8));
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    std::snprintf(octal, sizeof octal, "%06o", sum);
    put(148, std::string_view(octal, 7));
    return block;
}

}  // namespace hearth::pool::docker
