#include <lzma.h>
#include <zlib.h>

#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/egress/mirror/apt/AptRelease.h"
#include "controller/egress/mirror/apt/AptSource.h"
#include "controller/egress/mirror/apt/AptTable.h"
#include "controller/egress/mirror/store/Decompressor.h"
#include "controller/egress/policy/Refused.h"

// The statements of an archive of Debian packages, and possible ones of a hostile archive.

namespace hearth::broker {
namespace {

const std::string kHash(64, 'a');
const std::string kOther(64, 'b');

std::string gzipped(const std::string& text) {
    std::string out(text.size() + 100'000, '\0');
    z_stream stream{};
    REQUIRE(::deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    ::deflateEnd(&stream);
    return out;
}

std::string xzipped(const std::string& text, std::uint32_t preset = 6) {
    std::string out(text.size() + 100'000, '\0');
    std::size_t size = 0;
    REQUIRE(::lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, nullptr,
                                      reinterpret_cast<const std::uint8_t*>(text.data()),
                                      text.size(), reinterpret_cast<std::uint8_t*>(out.data()),
                                      &size, out.size()) == LZMA_OK);
    out.resize(size);
    return out;
}

std::string unpacked(const std::string& name, const std::string& packed, std::size_t piece,
                     std::uint64_t most = 1U << 30U) {
    std::string out;
    const auto decoder =
        Decompressor::forName(name, most, [&](std::string_view s) { out.append(s); });
    for (std::size_t at = 0; at < packed.size(); at += piece) {
        decoder->add(std::string_view(packed).substr(at, piece));
    }
    decoder->finish();
    return out;
}

AptTable tableOf(const std::string& text, std::size_t piece = 1'000'000) {
    AptTableReader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        reader.add(std::string_view(text).substr(at, piece));
    }
    return reader.finish();
}

std::string package(const std::string& path, const std::string& hash = kHash,
                    const std::string& size = "12") {
    return "Package: x\nDescription: y\n Filename: pool/no.deb\nFilename: " + path +
           "\nSize: " + size + "\nMD5sum: 0\nSHA256: " + hash + "\n\n";
}

AptRelease releaseOf(const std::string& text) {
    return parseAptRelease(text, {"main", "contrib"});
}

std::string reasonOf(const std::function<void()>& what) {
    try {
        what();
        return "";
    } catch (const Refused& e) {
        return e.reason();
    }
}

std::string hintOf(const std::string& line) {
    try {
        AptSource::parse(line);
        return "";
    } catch (const Error& e) {
        CHECK_FALSE(std::string(e.what()).empty());
        return e.hint();
    }
}

}  // namespace

TEST_CASE("an archive is read as apt's sources have it", "[unit][broker]") {
    const AptSource plain = AptSource::parse("http://deb.example/debian bookworm main contrib");
    CHECK(plain.url == "http://deb.example/debian/");
    CHECK(plain.suite == "bookworm");
    CHECK(plain.components == std::vector<std::string>{"main", "contrib"});
    CHECK(plain.keyring == "/usr/share/keyrings/debian-archive-keyring.gpg");
    CHECK_FALSE(plain.keyring_optional);  // else anybody on the path could send anything
    CHECK_FALSE(plain.trusted);
    const AptSource own =
        AptSource::parse("  deb [ signed-by=/etc/k.gpg ]\thttps://[::1]:8443/x/ stable-2  main ");
    CHECK(own.url == "https://[::1]:8443/x/");
    CHECK(own.suite == "stable-2");
    CHECK(own.keyring == "/etc/k.gpg");
    CHECK_FALSE(own.keyring_optional);
    CHECK(AptSource::parse("https://deb.example/debian bookworm main").keyring_optional);
    const AptSource trusted = AptSource::parse("[trusted=yes] http://x.example s main");
    CHECK((trusted.trusted && trusted.keyring.empty() && !trusted.keyring_optional));
}

TEST_CASE("what is no archive is refused with what to write", "[unit][broker]") {
    for (const char* line : {"",
                             "deb",
                             "http://x.example",
                             "http://x.example s",
                             "ftp://x.example s main",
                             "cdrom:[x]/ s main",
                             "http://x.example/?a s main",
                             "http://x.example ./ main",
                             "http://x.example ../s main",
                             "http://x.example a/b main",
                             "http://x.example s ../main",
                             "http://x.example s main [x]",
                             "[trusted=yes http://x s m",
                             "[trusted=no] http://x.example s main",
                             "[signed-by=k.gpg] http://x.example s main",
                             "[signed-by=/a/../k.gpg] http://x.example s main",
                             "[arch=amd64] http://x.example s m",
                             "[trusted=yes signed-by=/k] http://x.example s main",
                             "http://x.example s\nx main",
                             "http://x.example s ma]in"}) {
        INFO(line);
        CHECK_FALSE(hintOf(line).empty());
    }
    CHECK_FALSE(hintOf("http://x.example s " + std::string(2'000, 'm')).empty());
    CHECK_THROWS_AS(parseAptSources({"http://x.example s main", "http://y.example s contrib"}),
                    Error);
    CHECK_THROWS_AS(parseAptSources(std::vector<std::string>(33, "http://x.example s main")),
                    Error);
    CHECK(parseAptSources({"http://x.example s main", "http://x.example t main"}).size() == 2);
}

TEST_CASE("a path of an archive leads nowhere else", "[unit][broker]") {
    for (const char* good : {"pool/main/libs/libstdc++/libstdc++6_12.2.0-14~x_amd64.deb", "a",
                             "main/i18n/Translation-zh_CN.xz", "x/a%3ab@1,2=3:4.deb"}) {
        CHECK(isAptPath(good));
    }
    for (const char* bad :
         {"",    "/",   "/a",   "a/",   "a//b", "..",  "a/../b", "a/./b", ".a",  "a/.b",
          "./a", "a b", "a\tb", "a\nb", "a\\b", "a?b", "a#b",    "ä",     "a;b", "a\"b"}) {
        INFO(bad);
        CHECK_FALSE(isAptPath(bad));
    }
    CHECK_FALSE(isAptPath(std::string("a\0b", 3)));
    CHECK_FALSE(isAptPath(std::string(401, 'a')));
}

TEST_CASE("a Release tells the files of the components that are mirrored", "[unit][broker]") {
    const std::string body =
        "Origin: X\nAcquire-By-Hash: yes\nMD5Sum:\n 00 5 main/x\nSHA256:\n " + kHash +
        "      120 main/binary-amd64/Packages.gz\n " + kOther +
        " 7 contrib/i18n/Translation-en\n " + kHash + " 7 non-free/binary-amd64/Packages\n " +
        kHash + " 7 main/../x\n zz 7 main/y\n " + kHash + " -7 main/z\n " + kHash +
        "\n \nSHA512:\n " + std::string(128, 'C') + " 120 main/binary-amd64/Packages.gz\n " +
        std::string(128, 'c') + " 9 main/only-there\n";
    const auto check = [&](const AptRelease& release) {
        CHECK(release.by_hash);
        REQUIRE(release.files.size() == 2);
        const auto* const packages = release.find("main/binary-amd64/Packages.gz");
        REQUIRE(packages != nullptr);
        CHECK(packages->second.sha256 == kHash);
        CHECK(packages->second.sha512 == std::string(128, 'c'));
        CHECK(packages->second.size == 120);
        CHECK(release.find("main/binary-amd64/by-hash/SHA256/" + kHash) == packages);
        CHECK(release.find("main/binary-amd64/by-hash/SHA512/" + std::string(128, 'c')) ==
              packages);
        CHECK(release.find("main/by-hash/SHA256/" + kHash) == nullptr);
        CHECK(release.find("main/binary-amd64/by-hash/SHA256/" + kOther) == nullptr);
        CHECK(release.find("main/binary-amd64/by-hash/MD5Sum/00") == nullptr);
        CHECK(release.find("main/binary-amd64/by-hash/SHA512/") == nullptr);
        CHECK(release.find("main/binary-amd64") == nullptr);
    };
    check(releaseOf(body));
    const std::string begin = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n";
    const std::string end = "-----BEGIN PGP SIGNATURE-----\n\nxyz\n-----END PGP SIGNATURE-----\n";
    check(releaseOf(begin + body + end));
    // Text after the signature is not signed.
    check(releaseOf(begin + body + end + "SHA256:\n " + kOther + " 1 main/evil\n"));
    for (const std::string& bad :
         {std::string(), std::string("<html>"), std::string("SHA1:\n 00 1 main/x\n"), begin + body,
          "SHA256:\n " + kOther + " 1 main/evil\n" + begin + body + end,
          std::string("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n"),
          body + "SHA256:\n " + kOther + " 120 main/binary-amd64/Packages.gz\n",
          body + "SHA256:\n " + kHash + " 121 main/binary-amd64/Packages.gz\n"}) {
        INFO(bad);
        CHECK(reasonOf([&] { releaseOf(bad); }) == "bad_index");
    }
    std::string endless = "SHA256:\n";
    for (int i = 0; i < 60'000; ++i) endless += " " + kHash + " 1 main/" + std::to_string(i) + "\n";
    CHECK(reasonOf([&] { releaseOf(endless); }) == "bad_index");
}

TEST_CASE("an index of packages is read in any pieces", "[unit][broker]") {
    const std::string text =
        package("pool/a_1.deb") + "\r\n\n" + "Package: long\nDepends: " + std::string(50'000, 'x') +
        "\nfilename:pool/b_1.deb\r\nsize: 9\r\nsha256: " + kOther + "\r\n\r\n" +
        package("./c_1.deb") +
        "Package: last\nFilename: pool/d.deb\nSize: 1\nSHA256: " + std::string(64, 'F');
    for (const std::size_t piece : {1UL, 7UL, 999UL, 1'000'000UL}) {
        const AptTable table = tableOf(text, piece);
        REQUIRE(table.size() == 4);
        CHECK(table.find("pool/a_1.deb")->sha256 == kHash);
        CHECK(table.find("pool/a_1.deb")->size == 12);
        CHECK(table.find("pool/b_1.deb")->sha256 == kOther);
        CHECK(table.find("c_1.deb"));
        CHECK(table.find("pool/d.deb")->sha256 == std::string(64, 'f'));
        CHECK_FALSE(table.find("pool/no.deb"));
        CHECK_FALSE(table.find(""));
    }
}

TEST_CASE("a package that is told wrongly, or in two ways, is nobody's", "[unit][broker]") {
    const AptTable table = tableOf(
        package("pool/good.deb") + package("pool/short.deb", kHash.substr(1)) +
        package("pool/long.deb", kHash + "a") + package("pool/digits.deb", std::string(64, 'g')) +
        package("pool/size.deb", kHash, "12x") + package("pool/minus.deb", kHash, "-1") +
        package("pool/huge.deb", kHash, "99999999999999999999999") + package("pool/../up.deb") +
        package("/etc/passwd.deb") + package("pool/b lank.deb") + package("") +
        package(std::string(2'000, 'p')) + "Filename: pool/bare.deb\n\nSize: 1\n\nSHA256: " +
        kHash + "\n\nFilename: pool/one.deb\nFilename: pool/two.deb\nSize: 1\nSHA256: " + kHash +
        "\n\nFilename: pool/three.deb\nSize: 1\nSHA256: " + kHash + "\nSHA256: " + kOther + "\n\n" +
        package("pool/twice.deb") + package("pool/same.deb") + package("pool/twice.deb", kOther) +
        package("pool/same.deb") + package("pool/sizes.deb") +
        package("pool/sizes.deb", kHash, "13"));
    CHECK(table.size() == 2);
    CHECK(table.find("pool/good.deb"));
    CHECK(table.find("pool/same.deb"));
    CHECK(tableOf("").size() == 0);
    CHECK(tableOf("\n\n\n").size() == 0);
}

TEST_CASE("an index with too many packages is refused", "[unit][broker]") {
    AptTableReader reader;
    const auto flood = [&] {
        for (int i = 0; i < 400'001; ++i) {
            reader.add("Filename: " + std::to_string(i) + "\nSize: 1\nSHA256: " + kHash + "\n\n");
        }
    };
    CHECK(reasonOf(flood) == "too_large");
}

TEST_CASE("what an archive packed is unpacked in any pieces", "[unit][broker]") {
    std::string text;
    for (int i = 0; i < 30'000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
    for (const std::size_t piece : {1UL, 4'093UL, 10'000'000UL}) {
        CHECK(unpacked("x/Packages.gz", gzipped(text), piece) == text);
        CHECK(unpacked("x/Packages.gz", gzipped(text) + gzipped("more"), piece) == text + "more");
        CHECK(unpacked("x/Packages.xz", xzipped(text), piece) == text);
        CHECK(unpacked("x/Packages.xz", xzipped(text) + xzipped("more"), piece) == text + "more");
        CHECK(unpacked("x/Packages", text, piece) == text);
    }
    CHECK(unpacked("Packages.gz", gzipped(""), 1).empty());
    CHECK(unpacked("Packages.xz", xzipped(""), 1).empty());
}

TEST_CASE("what is cut short, broken or too much is refused while it is unpacked",
          "[unit][broker]") {
    const std::string text(200'000, 'x');
    for (const std::string name : {"Packages.gz", "Packages.xz"}) {
        const std::string packed = name.ends_with("gz") ? gzipped(text) : xzipped(text);
        for (std::size_t size = 0; size < packed.size(); ++size) {
            CHECK(reasonOf([&] { unpacked(name, packed.substr(0, size), 100); }) == "bad_index");
        }
        CHECK(reasonOf([&] { unpacked(name, packed + "behind", 100); }) == "bad_index");
        CHECK(reasonOf([&] { unpacked(name, "<html>", 100); }) == "bad_index");
        CHECK(unpacked(name, packed, 100, text.size()) == text);
        CHECK(reasonOf([&] { unpacked(name, packed, 100, text.size() - 1); }) == "too_large");
    }
    CHECK(reasonOf([&] { unpacked("Packages", text, 100, text.size() - 1); }) == "too_large");
    // 256 MiB of zeroes in some 40 KB: no more than the bound ever comes out.
    std::uint64_t out = 0;
    const auto decoder = Decompressor::forName(
        "Packages.xz", 1U << 20U, [&](std::string_view piece) { out += piece.size(); });
    const std::string bomb = xzipped(std::string(256U << 20U, '\0'), 1);
    CHECK(bomb.size() < 100'000);
    CHECK(reasonOf([&] { decoder->add(bomb); }) == "too_large");
    CHECK(out <= 1U << 20U);
    // The decoder would need a dictionary of 1.5 GiB before it gives any output.
    lzma_options_lzma options{};
    REQUIRE_FALSE(::lzma_lzma_preset(&options, 0));
    options.dict_size = 1536U << 20U;
    std::array<lzma_filter, 2> filters{
        {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
    std::string greedy = xzipped("x", 0);
    lzma_stream_flags flags{};
    lzma_block block{};
    block.check = LZMA_CHECK_CRC64;
    block.filters = filters.data();
    flags.check = LZMA_CHECK_CRC64;
    block.compressed_size = LZMA_VLI_UNKNOWN;
    block.uncompressed_size = LZMA_VLI_UNKNOWN;
    REQUIRE(::lzma_block_header_size(&block) == LZMA_OK);
    greedy.assign(LZMA_STREAM_HEADER_SIZE + block.header_size, '\0');
    auto* const bytes = reinterpret_cast<std::uint8_t*>(greedy.data());
    REQUIRE(::lzma_stream_header_encode(&flags, bytes) == LZMA_OK);
    REQUIRE(::lzma_block_header_encode(&block, bytes + LZMA_STREAM_HEADER_SIZE) == LZMA_OK);
    CHECK(reasonOf([&] { unpacked("Packages.xz", greedy, 100); }) == "too_large");
}

TEST_CASE("whatever is changed in an archive's files, they are read or refused", "[unit][broker]") {
    const std::string release = "Origin: X\nAcquire-By-Hash: yes\nSHA256:\n " + kHash +
                                " 120 main/binary-amd64/Packages.gz\n";
    const std::string armored = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + release +
                                "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n";
    const std::string packages = package("pool/a.deb") + package("pool/b.deb", kOther);
    const std::string gz = gzipped(packages);
    const std::string xz = xzipped(packages);
    std::mt19937 random(20'261'122);
    const auto changed = [&](std::string text) {
        for (int i = 0; i < 1 + static_cast<int>(random() % 4); ++i) {
            const std::size_t at = random() % text.size();
            if (random() % 3 == 0)
                text.erase(at, 1 + random() % 20);
            else if (random() % 2 == 0)
                text[at] = static_cast<char>(random());
            else
                text.insert(at, text.substr(random() % text.size(), random() % 40));
            if (text.empty()) text = "x";
        }
        return text;
    };
    for (int i = 0; i < 3'000; ++i) {
        try {
            const AptRelease read = releaseOf(changed(i % 2 == 0 ? release : armored));
            for (const auto& [path, file] : read.files) {
                CHECK((isAptPath(path) && path.starts_with("main/")));
                CHECK(file.sha256.size() == 64);
            }
        } catch (const Refused&) {
        }
        CHECK(tableOf(changed(packages), 1 + random() % 50).size() <= 4);
        for (const auto& [name, packed] : {std::pair{"Packages.gz", &gz}, {"Packages.xz", &xz}}) {
            try {
                // Data with the right checksum is the data that was packed.
                const std::string out = unpacked(name, changed(*packed), 50, 4'096);
                CHECK((out.empty() || out.find(packages) != std::string::npos));
            } catch (const Refused&) {
            }
        }
    }
}

}  // namespace hearth::broker
