#include "controller/spec/ImageAllowList.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {
const std::string kDigest = "sha256:" + std::string(64, 'a');
}

TEST_CASE("a pattern allows the tags that it names, in every spelling of the reference",
          "[unit][controller]") {
    const ImageAllowList list({"docker.io/library/python:3.*-slim"});
    CHECK(list.allows("python:3.9-slim"));
    CHECK(list.allows("docker.io/library/python:3.11-slim"));
    CHECK_FALSE(list.allows("python:3.9"));
    CHECK_FALSE(list.allows("python"));
    CHECK_FALSE(list.allows("other/python:3.9-slim"));
    CHECK_FALSE(list.allows("registry.example/python:3.9-slim"));
    CHECK_FALSE(list.allows("registry.example/library/python:3.9-slim"));
}

TEST_CASE("a digest needs a pattern with a digest, or one of every tag", "[unit][controller]") {
    const ImageAllowList some({"python:3.*"});
    CHECK_FALSE(some.allows("python@" + kDigest));
    CHECK_FALSE(some.allows("python:3.9@" + kDigest));  // nothing proves that this is 3.9
    const ImageAllowList every({"python:*"});
    CHECK(every.allows("python@" + kDigest));
    CHECK(every.allows("python:3.9@" + kDigest));
    CHECK(every.allows("python"));
    const ImageAllowList pinned({"registry.example/team/*@sha256:*"});
    CHECK(pinned.allows("registry.example/team/app@" + kDigest));
    CHECK(pinned.allows("registry.example/team/app:2@" + kDigest));
    CHECK_FALSE(pinned.allows("registry.example/team/app:2"));
    CHECK_FALSE(pinned.allows("registry.example/team/more/app@" + kDigest));
    const ImageAllowList one({"python@" + kDigest});
    CHECK(one.allows("python@" + kDigest));
    CHECK_FALSE(one.allows("python@sha256:" + std::string(64, 'b')));
}

TEST_CASE("a star never stands for a registry's host", "[unit][controller]") {
    const ImageAllowList list({"*/*:*", "*:*"});
    CHECK(list.allows("team/app:1"));
    CHECK(list.allows("app:1"));
    CHECK_FALSE(list.allows("10.0.0.1/app:1"));
    CHECK_FALSE(list.allows("evil.example/app:1"));
    CHECK_FALSE(list.allows("localhost/app:1"));
    CHECK_FALSE(list.allows("a:5000/app:1"));
    CHECK(ImageAllowList({"a:5000/*:*"}).allows("a:5000/app:1"));
}

TEST_CASE("a pattern that can match nothing is refused with an example", "[unit][controller]") {
    for (const std::string pattern :
         {"", "python", "*.example/app:*", "*:5000/app:1", "Python:*", "python:", "python@md5:*",
          "/python:*", "python/:*", "py thon:*", "python:a b"}) {
        INFO(pattern);
        const Error error = errorOf([&] { ImageAllowList({pattern}); });
        CHECK(error.code() == ErrorCode::InvalidArgument);
        CHECK(error.hint().find("python:*") != std::string::npos);
    }
}

TEST_CASE("an empty list allows nothing, and text that is no reference is never allowed",
          "[unit][controller]") {
    CHECK_FALSE(ImageAllowList().allows("python:3"));
    const ImageAllowList list({"*:*", "python:*"});
    for (const char* text : {"", "a b", "../x", "python:", "@", "python@sha256:1"}) {
        CHECK_FALSE(list.allows(text));
    }
    CHECK(list.text() == "*:*, python:*");
}
