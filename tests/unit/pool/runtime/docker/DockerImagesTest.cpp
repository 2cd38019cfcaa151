#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "pool/runtime/docker/DockerImages.h"
#include "pool/sys/Files.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using hearth::pool::docker::DockerImages;
namespace fs = std::filesystem;

namespace {

const std::string kDigest = "sha256:" + std::string(64, 'd');
const std::string kId = "sha256:" + std::string(64, '1');

struct Held {
    std::string id;
    std::vector<std::string> tags;
    std::vector<std::string> digests;
    bool used = false;  ///< by a container
};

/// The part of a daemon's image functions that inspect, pull, tag and remove need.
class Daemon {
public:
    Daemon()
        : engine_([this](const Seen& seen) { return answerTo(seen); }), client_(engine_.address()) {
        std::string name = (fs::temp_directory_path() / "images-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        data_ = name;
        fs::create_directories(data_ + "/images");
        fs::create_directories(DockerImages::recordsOf(data_));
    }
    ~Daemon() {
        std::error_code error;
        fs::remove_all(data_, error);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    std::vector<std::string> records() const {
        return sys::listDirectory(DockerImages::recordsOf(data_));
    }
    Held* find(const std::string& name) {
        for (Held& image : images) {
            const auto in = [&](const std::vector<std::string>& names) {
                return std::find(names.begin(), names.end(), name) != names.end();
            };
            if (image.id == name || in(image.tags) || in(image.digests)) return &image;
        }
        return nullptr;
    }
    pool::docker::EngineClient& client() { return client_; }
    const std::string& data() const { return data_; }

    std::vector<Held> images;
    std::map<std::string, std::string> registry;  ///< digests by reference
    std::string pull_says;                        ///< instead of success

private:
    static std::string decoded(const std::string& text) {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '%') {
                out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
                i += 2;
            } else {
                out += text[i];
            }
        }
        return out;
    }
    static std::string missing() { return answer(404, R"({"message":"No such image: x"})"); }

    std::string answerTo(const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        const std::string target = decoded(seen.target.substr(6));
        const auto between = [&](const std::string& head, const std::string& tail) {
            return target.substr(head.size(), target.size() - head.size() - tail.size());
        };
        if (target == "/images/json") {
            Json list = Json::array();
            for (const Held& image : images) list.push_back(json(image));
            return answer(200, dumpJson(list));
        }
        if (target.starts_with("/distribution/")) {
            const auto found = registry.find(between("/distribution/", "/json"));
            if (found == registry.end()) return answer(404, R"({"message":"manifest unknown"})");
            return answer(200, dumpJson({{"Descriptor", {{"digest", found->second}}}}));
        }
        if (target.starts_with("/images/create")) {
            if (!pull_says.empty()) return answer(200, pull_says);
            const std::size_t tag = target.find("&tag=");
            const std::string repository = target.substr(25, tag - 25);
            images.push_back({kId, {}, {repository + "@" + target.substr(tag + 5)}});
            return answer(200, R"({"status":"Pull complete"})");
        }
        if (seen.method == "POST") {
            const std::size_t query = target.find("/tag?repo=");
            const std::size_t tag = target.find("&tag=");
            find(target.substr(8, query - 8))
                ->tags.push_back(target.substr(query + 10, tag - query - 10) + ":" +
                                 target.substr(tag + 5));
            return answer(201, "");
        }
        if (seen.method == "DELETE") return remove(between("/images/", ""));
        const Held* image = find(between("/images/", "/json"));
        return image == nullptr ? missing() : answer(200, dumpJson(json(*image)));
    }
    static Json json(const Held& image) {
        return {{"Id", image.id}, {"RepoTags", image.tags}, {"RepoDigests", image.digests}};
    }
    std::string remove(const std::string& name) {
        Held* image = find(name);
        if (image == nullptr) return missing();
        if (image->used && image->tags.size() + image->digests.size() == 1) {
            return answer(409, R"({"message":"conflict: a container uses it"})");
        }
        std::erase(image->tags, name);
        std::erase(image->digests, name);
        std::erase_if(images,
                      [](const Held& each) { return each.tags.empty() && each.digests.empty(); });
        return answer(200, "[]");
    }

    FakeEngine engine_;
    pool::docker::EngineClient client_;
    std::string data_;
};

}  // namespace

TEST_CASE("a daemon's image is known by tag in every spelling, by id and by digest",
          "[unit][docker]") {
    Daemon daemon;
    daemon.images.push_back({kId, {"python:3.9-slim"}, {"python@" + kDigest}});
    DockerImages images(daemon.client(), daemon.data());
    REQUIRE(images.resolve("python:3.9-slim", soon()) == kId);
    for (const std::string& name :
         {std::string("python:3.9-slim"), std::string("docker.io/library/python:3.9-slim"), kId,
          kDigest, "python@" + kDigest, "docker.io/library/python:3@" + kDigest}) {
        INFO(name);
        CHECK(images.same("python:3.9-slim", name, soon()));
    }
    for (const std::string& name :
         {std::string("python"), std::string("python:3.9"), std::string("team/python:3.9-slim"),
          "team/python@" + kDigest, "sha256:" + std::string(64, '2')}) {
        INFO(name);
        CHECK_FALSE(images.same("python:3.9-slim", name, soon()));
    }
    CHECK(images.known(kDigest, soon())->pinned == kId);
    CHECK_FALSE(images.known("python:3.8", soon()));
}

TEST_CASE("an image is pulled by the digest of its tag, and recorded by a tag of ours",
          "[unit][docker]") {
    Daemon daemon;
    daemon.registry["team/app:1"] = kDigest;
    DockerImages images(daemon.client(), daemon.data());
    const pool::KnownImage image = images.fetch("team/app:1", soon());
    CHECK(image.pinned == kId);
    REQUIRE(daemon.images.size() == 1);
    CHECK(daemon.images[0].digests == std::vector<std::string>{"team/app@" + kDigest});
    CHECK(daemon.images[0].tags == std::vector<std::string>{"hearth/ondemand:111111111111"});
    CHECK(daemon.records() == std::vector<std::string>{"ondemand:111111111111"});

    images.collect({kId}, soon());
    CHECK(daemon.images.size() == 1);  // a pool uses it
    daemon.images[0].used = true;
    images.collect({}, soon());
    CHECK(daemon.images.size() == 1);
    CHECK(daemon.records().size() == 1);  // tried again after its container
    daemon.images[0].used = false;
    images.collect({}, soon());
    CHECK(daemon.images.empty());
    CHECK(daemon.records().empty());
}

TEST_CASE("images from before a fetch, or tagged by others after it, stay", "[unit][docker]") {
    Daemon daemon;
    daemon.registry["team/app:1"] = kDigest;
    daemon.images.push_back({kId, {"team/app:old"}, {"team/app@" + kDigest}});
    DockerImages images(daemon.client(), daemon.data());
    CHECK(images.fetch("team/app:1", soon()).pinned == kId);
    CHECK(daemon.records().empty());
    daemon.images.clear();
    images.fetch("team/app:1", soon());
    daemon.images[0].tags.push_back("mine:1");
    images.collect({}, soon());
    REQUIRE(daemon.images.size() == 1);
    CHECK(daemon.images[0].tags == std::vector<std::string>{"mine:1"});
}

TEST_CASE("only recorded tags of replaced layouts are removed", "[unit][docker]") {
    Daemon daemon;
    daemon.images.push_back({kId, {"hearth/v:000000000000"}, {}});
    daemon.images.push_back({"sha256:" + std::string(64, '2'), {"hearth/v:mine"}, {}});
    sys::writeFile(DockerImages::recordsOf(daemon.data()) + "/v:000000000000", "", 0600);
    DockerImages(daemon.client(), daemon.data()).collect({}, soon());
    REQUIRE(daemon.images.size() == 1);
    CHECK(daemon.images[0].tags == std::vector<std::string>{"hearth/v:mine"});
}

TEST_CASE("a broken pull leaves a record, and its parts are removed", "[unit][docker]") {
    Daemon daemon;
    daemon.registry["team/app:1"] = kDigest;
    DockerImages images(daemon.client(), daemon.data());
    daemon.pull_says = R"({"status":"Pulling"}
{"errorDetail":{"message":"write /x: no space left on device"},"error":"x"})";
    try {
        images.fetch("team/app:1", soon());
        FAIL("fetched");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::DiskFull);
    }
    CHECK(daemon.records().size() == 1);
    daemon.images.push_back({kId, {}, {"team/app@" + kDigest}});
    images.collect({}, soon());
    CHECK(daemon.images.empty());
    CHECK(daemon.records().empty());
}

TEST_CASE("a registry without the image and a stopped fetch are different errors",
          "[unit][docker]") {
    Daemon daemon;
    DockerImages images(daemon.client(), daemon.data());
    const auto code = [&] {
        try {
            images.fetch("team/none:1", soon());
        } catch (const Error& e) {
            CHECK_FALSE(std::string(e.what()).empty());
            return e.code();
        }
        return ErrorCode::Internal;
    };
    CHECK(code() == ErrorCode::NotFound);
    images.stopFetching();
    CHECK(code() == ErrorCode::Unavailable);
}
