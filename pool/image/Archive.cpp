#include "pool/image/Archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/tar/Tar.h"

namespace hearth::pool::image {
namespace {

constexpr std::size_t kMostEntries = 100'000;
constexpr std::size_t kMaxList = 1U << 20U;

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

/// The program for data with this beginning; empty if it is not compressed.
std::string compressor(std::string_view block) {
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
        if (block.starts_with(magic.begin)) return magic.program;
    }
    return {};
}

/// Reads the names in an archive, and keeps the list of images.
class Names final : public tar::TarSink {
public:
    bool member(const tar::TarMember& member) override {
        std::string_view name = member.path;
        if (name.starts_with("./")) name.remove_prefix(2);
        oci_ = oci_ || name == "oci-layout";
        listed_ = name == "manifest.json" && member.size <= kMaxList;
        list_.clear();
        return ++entries_ <= kMostEntries;
    }
    bool content(std::string_view bytes) override {
        if (listed_) list_ += bytes;
        return true;
    }
    bool memberEnd() override {
        if (listed_) readDockerList(list_, found);
        listed_ = false;
        return true;
    }
    bool wanted() const { return listed_; }
    Archive done() {
        if (found.kind == Archive::Kind::Other && oci_) found.kind = Archive::Kind::Oci;
        return std::move(found);
    }

    Archive found;

private:
    bool oci_ = false;
    bool listed_ = false;  ///< the present entry is the list
    std::string list_;
    std::size_t entries_ = 0;
};

}  // namespace

Archive inspectArchive(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throwErrno("open", path);
    Names names;
    tar::TarReader reader(names);
    std::array<char, tar::TarReader::kBlock> bytes{};
    const std::string_view block(bytes.data(), bytes.size());
    off_t at = 0;
    // Reads up to the end, or to the first entry that no image archive has.
    while (::pread(fd.get(), bytes.data(), bytes.size(), at) == std::ssize(bytes)) {
        if (at == 0) names.found.program = compressor(block);
        if (!names.found.program.empty()) {
            names.found.kind = Archive::Kind::Compressed;
            break;
        }
        if (!reader.feed(block)) break;
        at += std::ssize(bytes);
        if (names.wanted()) continue;
        at += static_cast<off_t>(reader.ahead());
        if (!reader.skip()) break;
    }
    return names.done();
}

}  // namespace hearth::pool::image
