#include "api/cli/Tar.h"

#include <cstdio>
#include <cstring>

#include "base/Error.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kBlock = 512;

/// The header of POSIX.1-1988 (ustar); numbers are octal digits.
struct Header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char rest[247];
};
static_assert(sizeof(Header) == kBlock);

std::size_t padded(std::size_t size) {
    return (size + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

std::string tarOf(std::string_view name, std::string_view bytes) {
    Header header{};
    name.copy(header.name, sizeof(header.name) - 1);
    std::snprintf(header.mode, sizeof(header.mode), "0000644");
    std::snprintf(header.uid, sizeof(header.uid), "0000000");
    std::snprintf(header.gid, sizeof(header.gid), "0000000");
    std::size_t left = bytes.size();
    for (std::size_t i = sizeof(header.size) - 1; i-- > 0; left >>= 3U) {
        header.size[i] = static_cast<char>('0' + (left & 7U));
    }
    std::snprintf(header.mtime, sizeof(header.mtime), "00000000000");
    std::memcpy(header.magic, "ustar", 6);
    std::memcpy(header.version, "00", 2);
    header.type = '0';
    std::memset(header.checksum, ' ', sizeof(header.checksum));
    unsigned sum = 0;
    const auto* raw = reinterpret_cast<const unsigned char*>(&header);
    for (std::size_t i = 0; i < kBlock; ++i) sum += raw[i];
    std::snprintf(header.checksum, sizeof(header.checksum), "%06o", sum & 0777777U);
    std::string archive(reinterpret_cast<const char*>(&header), kBlock);
    archive.append(bytes);
    archive.resize(kBlock + padded(bytes.size()) + 2 * kBlock, '\0');
    return archive;
}

std::string firstFileOfTar(std::string_view archive) {
    for (std::size_t at = 0; at + kBlock <= archive.size();) {
        Header header{};
        std::memcpy(&header, archive.data() + at, kBlock);
        std::size_t size = 0;
        for (std::size_t i = 0; i < 11 && header.size[i] >= '0' && header.size[i] <= '7'; ++i) {
            size = size * 8 + static_cast<std::size_t>(header.size[i] - '0');
        }
        at += kBlock;
        if (at + size > archive.size()) break;
        if (header.name[0] != '\0' && (header.type == '0' || header.type == '\0')) {
            return std::string(archive.substr(at, size));
        }
        at += padded(size);
    }
    throw Error(ErrorCode::Internal, "the archive holds no file");
}

}  // namespace hearth::cli
