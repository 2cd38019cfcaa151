#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Json.h"
#include "pool/runtime/docker/ImageArchive.h"

using namespace hearth;
using hearth::pool::docker::ImageArchive;

namespace {

/// An OCI layout with the blobs that a test gives.
class Layout {
public:
    Layout() {
        std::string name = (std::filesystem::temp_directory_path() / "layout-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = name;
        std::filesystem::create_directories(path_ + "/blobs/sha256");
    }
    ~Layout() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;

    std::string add(const std::string& bytes) const {
        const std::string hex = toHex(sha256(bytes));
        std::ofstream(path_ + "/blobs/sha256/" + hex) << bytes;
        return "sha256:" + hex;
    }
    std::string image(const std::string& config, const std::vector<std::string>& layers) const {
        Json list = Json::array();
        for (const std::string& layer : layers) list.push_back({{"digest", add(layer)}});
        return add(dumpJson({{"config", {{"digest", add(config)}}}, {"layers", list}}));
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

std::string readAll(ImageArchive& archive, std::size_t piece) {
    std::string all;
    std::string buffer(piece, '\0');
    while (const std::size_t n = archive.read(buffer.data(), buffer.size())) {
        all.append(buffer, 0, n);
    }
    return all;
}

/// Returns the files of a tar. Checks the checksums of their headers.
std::map<std::string, std::string> untar(const std::string& tar) {
    std::map<std::string, std::string> files;
    std::size_t at = 0;
    while (at + 512 <= tar.size() && tar[at] != '\0') {
        std::string header = tar.substr(at, 512);
        const std::size_t size = std::stoul(header.substr(124, 11), nullptr, 8);
        const unsigned told = static_cast<unsigned>(std::stoul(header.substr(148, 6), nullptr, 8));
        header.replace(148, 8, "        ");
        unsigned sum = 0;
        for (const char c : header) sum += static_cast<unsigned char>(c);
        CHECK(sum == told);
        files[header.c_str()] = tar.substr(at + 512, size);
        at += 512 + (size + 511) / 512 * 512;
    }
    CHECK(tar.size() - at == 1024);  // two empty blocks
    return files;
}

}  // namespace

TEST_CASE("a layout becomes the archive that docker load takes", "[unit][docker]") {
    const Layout layout;
    const std::string config = R"({"os":"linux"})";
    const std::string big(100'000, 'b');
    const std::string digest = layout.image(config, {"layer", big, "layer"});
    ImageArchive archive(layout.path(), digest, "hearth/x:1");
    const std::string tar = readAll(archive, 777);
    const auto files = untar(tar);
    REQUIRE(files.size() == 4);  // manifest, config, and each blob once
    const Json manifest = parseJson(files.at("manifest.json"));
    CHECK(manifest.at(0).at("RepoTags") == Json::array({"hearth/x:1"}));
    CHECK(files.at(manifest.at(0).at("Config").get<std::string>()) == config);
    const Json& layers = manifest.at(0).at("Layers");
    REQUIRE(layers.size() == 3);
    CHECK(files.at(layers.at(0).get<std::string>()) == "layer");
    CHECK(files.at(layers.at(1).get<std::string>()) == big);
    CHECK(layers.at(2) == layers.at(0));
}

TEST_CASE("a layout that is damaged or points elsewhere makes no archive", "[unit][docker]") {
    const Layout layout;
    const std::string good = layout.image("{}", {"layer"});
    const auto refused = [&](const std::string& manifest) {
        const std::string digest = layout.add(manifest);
        CHECK_THROWS_AS(ImageArchive(layout.path(), digest, "t"), Error);
    };
    refused("[]");
    refused(R"({"config":{"digest":"sha256:../../../etc/passwd"},"layers":[]})");
    refused(dumpJson(
        {{"config", {{"digest", "sha256:" + std::string(64, '0')}}}, {"layers", Json::array()}}));
    refused(dumpJson({{"config", {{"digest", layout.add("{}")}}},
                      {"layers", Json::array({{{"digest", "sha256:" + std::string(64, 'a')}}})}}));
    CHECK_THROWS_AS(ImageArchive(layout.path(), "sha256:zz", "t"), Error);
    CHECK_NOTHROW(ImageArchive(layout.path(), good, "t"));
}
