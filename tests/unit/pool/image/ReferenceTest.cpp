#include <catch2/catch.hpp>

#include "pool/image/ImageStore.h"
#include "pool/image/Reference.h"

namespace hearth::pool::image {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');
const std::string kOther = "sha256:" + std::string(64, 'b');

}  // namespace

TEST_CASE("each image has one spelling", "[unit][image]") {
    const auto text = [](const std::string& reference) {
        const auto parsed = parseReference(reference);
        return parsed ? parsed->text() : "refused";
    };
    CHECK(text("python") == "python:latest");
    CHECK(text("docker.io/library/python:3.9-slim") == "python:3.9-slim");
    CHECK(text("library/alpine") == "alpine:latest");
    CHECK(text("registry:5000/team/App:1") == "refused");
    CHECK(text("registry:5000/team/app:V1") == "registry:5000/team/app:V1");
    CHECK(text("python@" + kDigest) == "python@" + kDigest);
    CHECK(text("python:3@" + kDigest) == "python:3@" + kDigest);
    for (const char* bad : {"", ":", "a:", "a:b:c", "/a", "a//b", "../a", "a/../b", "a b", "a@b",
                            "a@sha256:short", "-a", "a:-b", "a\n", "a:.b"}) {
        INFO(bad);
        CHECK(text(bad) == "refused");
    }
}

TEST_CASE("a name in the store is a plain file name", "[unit][image]") {
    CHECK(isImageName("python-3.9_x"));
    for (const char* bad : {"", ".", "..", ".x", "-x", "a/b", "A", "a:b", "a b"}) {
        INFO(bad);
        CHECK_FALSE(isImageName(bad));
    }
    CHECK_FALSE(isImageName(std::string(65, 'a')));
    CHECK(storeName(*parseReference("python:3.9-slim")) == "python-3.9-slim");
    CHECK(storeName(*parseReference("r:5000/t/app:V1")) == "r-5000-t-app-v1");
    CHECK(storeName(*parseReference("alpine")) == "alpine");
}

TEST_CASE("the image of a request is a name, a reference or a digest", "[unit][image]") {
    for (const std::string& good : {std::string("a."), std::string("python:3.9-slim"), kDigest,
                                    "python@" + kDigest, std::string("r:5000/t/app")}) {
        INFO(good);
        CHECK(isImage(good));
    }
    for (const char* bad : {"", "Python", "a//b", "a:b:c", "a@b", ".."}) {
        INFO(bad);
        CHECK_FALSE(isImage(bad));
    }
}

TEST_CASE("an image matches its name, its reference and its digest", "[unit][image]") {
    const Image image{"slim", kDigest, true, "x.tar", "python:3.9-slim", kOther, ""};
    for (const std::string& wanted :
         {std::string("slim"), kDigest, std::string("python:3.9-slim"),
          std::string("docker.io/library/python:3.9-slim"), "python@" + kDigest,
          "python:3.9-slim@" + kOther, "slim@" + kDigest}) {
        INFO(wanted);
        CHECK(image.is(wanted));
    }
    for (const std::string& wanted :
         {std::string("python"), std::string("python:3.9"), std::string("python:latest"),
          "ruby@" + kDigest, "python:3.8@" + kDigest, "python@sha256:" + std::string(64, 'c'),
          std::string("slim:latest"), std::string("")}) {
        INFO(wanted);
        CHECK_FALSE(image.is(wanted));
    }
}

}  // namespace hearth::pool::image
