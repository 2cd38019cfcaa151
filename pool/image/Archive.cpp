#include "pool/image/Archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"

namespace hearth::pool::image {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostEntries = 100'000;
constexpr std::size_t kMaxList = 1U << 20U;

using Block = std::array<char, kBlock>;

bool readAt(const Fd& fd, void* out, std::size_t size, off_t at) {
    return ::pread(fd.get(), out, size, at) == static_cast<ssize_t>(size);
}

std::string field(const Block& block, std::size_t at, std::size_t size) {
    return {block.data() + at, ::strnlen(block.data() + at, size)};
}

/// Octal digits, or a big number in base 256; negative if it is neither.
off_t sizeOf(const Block& block) {
    constexpr std::size_t kAt = 124;
    constexpr std::size_t kWide = 12;
    off_t size = 0;
    if ((static_cast<unsigned char>(block[kAt]) & 0x80U) != 0) {
        for (std::size_t i = kAt + 4; i < kAt + kWide; ++i) {
            if (size > (off_t{1} << 48U)) return -1;
            size = size * 256 + static_cast<unsigned char>(block[i]);
        }
        return size;
    }
    for (std::size_t i = kAt; i < kAt + kWide; ++i) {
        if (block[i] == ' ' || block[i] == '\0') continue;
        if (block[i] < '0' || block[i] > '7') return -1;
        size = size * 8 + (block[i] - '0');
    }
    return size;
}

/// The list of images that `docker save` writes.
void readDockerList(const std::string& text, Archive& archive) {
    const Json list = Json::parse(text, nullptr, false);
    if (!list.is_array()) return;
    archive.kind = Archive::Kind::Docker;
    archive.images = list.size();
    for (const Json& image : list) {
        const auto tags = image.is_object() ? image.find("RepoTags") : image.end();
        if (!image.is_object() || tags == image.end() || !tags->is_array()) continue;
        for (const Json& tag : *tags) {
            if (tag.is_string()) archive.tags.push_back(tag.get<std::string>());
        }
    }
}

/// The program for what begins like this; empty if it is not compressed.
std::string compressor(const Block& block) {
    struct Magic {
        std::string_view begin;
        const char* program;
    };
    using namespace std::string_view_literals;
    constexpr std::array<Magic, 4> kMagic{{{"\x1f\x8b"sv, "gzip"},
                                           {"BZh"sv, "bzip2"},
                                           {"\xfd\x37\x7a\x58\x5a\x00"sv, "xz"},
                                           {"\x28\xb5\x2f\xfd"sv, "zstd"}}};
    for (const Magic& magic : kMagic) {
        if (std::string_view(block.data(), block.size()).starts_with(magic.begin)) {
            return magic.program;
        }
    }
    return {};
}

}  // namespace

Archive inspectArchive(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throwErrno("open", path);
    Archive archive;
    bool oci = false;
    Block block{};
    off_t at = 0;
    for (std::size_t i = 0; i < kMostEntries && readAt(fd, block.data(), kBlock, at); ++i) {
        if (i == 0) archive.program = compressor(block);
        if (!archive.program.empty()) {
            archive.kind = Archive::Kind::Compressed;
            return archive;
        }
        if (field(block, 257, 5) != "ustar") break;  // the end, or no archive
        std::string name = field(block, 0, 100);
        if (name.starts_with("./")) name.erase(0, 2);
        const off_t size = sizeOf(block);
        if (size < 0) break;
        oci = oci || name == "oci-layout";
        if (name == "manifest.json" && size > 0 && static_cast<std::size_t>(size) <= kMaxList) {
            std::string text(static_cast<std::size_t>(size), '\0');
            if (readAt(fd, text.data(), text.size(), at + static_cast<off_t>(kBlock))) {
                readDockerList(text, archive);
            }
        }
        constexpr auto kUnit = static_cast<off_t>(kBlock);
        at += kUnit + (size + kUnit - 1) / kUnit * kUnit;
    }
    if (archive.kind == Archive::Kind::Other && oci) archive.kind = Archive::Kind::Oci;
    return archive;
}

}  // namespace hearth::pool::image
