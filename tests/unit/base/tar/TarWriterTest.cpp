#include <fcntl.h>

#include <vector>

#include "base/tar/TarWriter.h"
#include "pool/tar/Tar.h"
#include "tests/support/Support.h"

namespace hearth {
namespace {

using Type = tar::TarMember::Type;

/// The content of an archive, as the agent reads it.
struct Listing final : tar::TarSink {
    bool member(const tar::TarMember& one) override {
        members.push_back(one);
        contents.emplace_back();
        return true;
    }
    bool content(std::string_view bytes) override {
        contents.back() += bytes;
        return true;
    }
    bool memberEnd() override { return true; }

    std::vector<tar::TarMember> members;
    std::vector<std::string> contents;
};

std::string readAll(TarWriter& writer, std::size_t piece = 777) {
    std::string all;
    std::string buffer(piece, '\0');
    while (const std::size_t n = writer.read(buffer.data(), piece)) all.append(buffer, 0, n);
    return all;
}

Listing listingOf(const std::string& archive) {
    Listing listing;
    tar::TarReader reader(listing);
    REQUIRE(reader.feed(archive));
    REQUIRE(reader.finish());
    CHECK(archive.size() % tar::TarReader::kBlock == 0);
    return listing;
}

}  // namespace

TEST_CASE("files, directories and links are read as they were written", "[unit][base]") {
    const std::string deep = "d/" + std::string(300, 'x') + "/\xff not UTF-8";
    const std::string far(200, 'y');
    TarWriter writer;
    writer.add({.name = "d", .type = TarEntry::Type::Directory, .mode = 0750});
    writer.add({.name = deep, .mode = 0755, .modified = 1'700'000'000}, "#!/bin/sh");
    writer.add({.name = "l", .type = TarEntry::Type::Symlink, .target = far});
    writer.add({.name = "old", .modified = -5}, "");
    writer.end();
    const Listing listing = listingOf(readAll(writer));
    REQUIRE(listing.members.size() == 4);
    CHECK(listing.members[0].type == Type::Directory);
    CHECK(listing.members[0].path == "d/");
    CHECK(listing.members[0].mode == 0750);
    CHECK(listing.members[1].path == deep);
    CHECK(listing.members[1].mode == 0755);
    CHECK(listing.members[1].modified == 1'700'000'000);
    CHECK(listing.contents[1] == "#!/bin/sh");
    CHECK(listing.members[2].type == Type::Symlink);
    CHECK(listing.members[2].target == far);
    CHECK(listing.members[3].modified == 0);
}

TEST_CASE("a file comes out of its archive as it went in, whatever its size", "[unit][base]") {
    const test::TempDir dir;
    const std::string path = dir.file("file");
    for (const std::size_t size : {0U, 1U, 511U, 512U, 513U, 70'000U}) {
        const std::string bytes(size, 'x');
        test::writeText(path, bytes);
        TarWriter writer;
        writer.add({.name = "file", .size = size}, Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
                   path);
        std::string archive = readAll(writer, 4'096);
        CHECK(writer.read(archive.data(), 1) == 0);  // nothing more until something is added
        writer.add({.name = "text"}, bytes);
        writer.end();
        const Listing listing = listingOf(archive + readAll(writer));
        CHECK(listing.contents == std::vector<std::string>{bytes, bytes});
    }
}

TEST_CASE("a file that shrinks while it is read ends its archive", "[unit][base]") {
    const test::TempDir dir;
    test::writeText(dir.file("file"), "short");
    constexpr std::uint64_t kPromised = 20ULL << 30U;  // the missing bytes are not invented
    TarWriter writer;
    writer.add({.name = "file", .size = kPromised},
               Fd(::open(dir.file("file").c_str(), O_RDONLY | O_CLOEXEC)), "file");
    char head[tar::TarReader::kBlock];
    REQUIRE(writer.read(head, sizeof head) == sizeof head);
    Listing listing;
    tar::TarReader reader(listing);
    REQUIRE(reader.feed({head, sizeof head}));
    CHECK(listing.members.at(0).size == kPromised);
    CHECK(test::errorOf([&] { readAll(writer); }).code() == ErrorCode::Conflict);
}

}  // namespace hearth
