#include <catch2/catch.hpp>

#include "controller/executions/SignedLink.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kWorkspacePath = "/v1/workspaces/" + kWorkspace;

/// Creates a link to a.txt and returns its path.
std::string made(House& house, const std::string& body = R"({"path":"a.txt"})") {
    FakeRequest request("POST", kWorkspacePath + "/links", body);
    request.json().with("Host", "hearth.example:8080");
    const Json answer = parseJson(bodyOf(house.rest.handle(request)));
    const std::string url = answer.at("url").get<std::string>();
    const std::string origin = "http://hearth.example:8080";
    REQUIRE(url.starts_with(origin + "/v1/links/"));
    return url.substr(origin.size());
}

ErrorCode linkRefusal(House& house, const std::string& path) {
    try {
        FakeRequest request("GET", path);
        house.rest.handle(request);
    } catch (const Error& e) {
        return e.code();
    }
    return ErrorCode::Internal;
}

}  // namespace

TEST_CASE("a link serves the file with headers that keep a browser from running it",
          "[unit][rest]") {
    House house;
    const std::string path = made(house);
    CHECK(path.ends_with("/a.txt"));
    FakeRequest request("GET", path);
    const api::Response response = house.rest.handle(request);
    CHECK(bodyOf(response) == "hello world");
    CHECK(headerOf(response, "Content-Disposition").starts_with("attachment"));
    CHECK(headerOf(response, "X-Content-Type-Options") == "nosniff");
    CHECK(headerOf(response, "Content-Security-Policy").starts_with("sandbox"));
    CHECK(headerOf(response, "Referrer-Policy") == "no-referrer");

    FakeRequest part("GET", path);
    part.with("Range", "bytes=6-");
    CHECK(bodyOf(house.rest.handle(part)) == "world");
}

TEST_CASE("a link works without a token and until its time only", "[unit][rest]") {
    House house;
    const std::string path = made(house, R"({"path":"a.txt","expiresInSeconds":60})");
    house.tokens.known["secret"] = {};
    FakeRequest request("GET", path);
    CHECK(house.rest.handle(request).status == 200);
    house.manual.advance(std::chrono::seconds(61));
    CHECK(linkRefusal(house, path) == ErrorCode::Gone);
}

TEST_CASE("a request by link uses no place of its tenant's worker share", "[unit][rest]") {
    House house;
    const std::string path = made(house);
    const auto get = [&](const std::string& what) {
        FakeRequest request("GET", what);
        return house.rest.handle(request).status;
    };
    std::vector<std::shared_ptr<void>> held;
    const auto fill = [&](const std::string& share) {
        try {
            while (true) held.push_back(house.shares.take(share));
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::RateLimited);
        }
    };
    fill("default/links");
    CHECK(linkRefusal(house, path) == ErrorCode::RateLimited);
    CHECK(get(kWorkspacePath) == 200);
    held.clear();
    fill("default");
    CHECK(get(path) == 200);
}

TEST_CASE("a link that was changed or signed with another key opens nothing", "[unit][rest]") {
    House house;
    const std::string path = made(house);
    const std::size_t begin = std::string("/v1/links/").size();
    const std::size_t end = path.rfind('/');
    for (std::size_t at = begin; at < end; at += 3) {
        std::string changed = path;
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        INFO(changed);
        CHECK(linkRefusal(house, changed) == ErrorCode::Forbidden);
    }
    controller::SignedLink link;
    link.workspace = kWorkspace;
    link.path = "a.txt";
    link.expires_unix = 1LL << 40;
    CHECK(linkRefusal(house, controller::linkPath(std::string(32, 'x'), link)) ==
          ErrorCode::Forbidden);
    CHECK(linkRefusal(house, "/v1/links/x/y") == ErrorCode::Forbidden);
    CHECK(linkRefusal(house, "/v1/links/.x/y") == ErrorCode::Forbidden);
}

TEST_CASE("the signature of a link covers the file's name", "[unit][rest]") {
    House house;
    const std::string path = made(house);
    const std::string signed_part = path.substr(0, path.rfind('/') + 1);
    for (const char* name : {"invoice.exe", "a.txt.html", "A.txt", "x", "a.tx"}) {
        INFO(name);
        CHECK(linkRefusal(house, signed_part + name) == ErrorCode::Forbidden);
    }
    FakeRequest head("HEAD", signed_part + "other.txt");
    CHECK_THROWS_AS(house.rest.handle(head), Error);
}

TEST_CASE("a link is made only to an existing file, by a caller who may read it", "[unit][rest]") {
    House house;
    const auto code = [&](const std::string& body) {
        try {
            FakeRequest request("POST", kWorkspacePath + "/links", body);
            request.json();
            house.rest.handle(request);
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::Internal;
    };
    CHECK(code(R"({"path":"absent"})") == ErrorCode::NotFound);
    CHECK(code(R"({"path":"dir"})") == ErrorCode::Conflict);
    CHECK(code(R"({"path":"a.txt","expiresInSeconds":0})") == ErrorCode::InvalidArgument);
    CHECK(code(R"({"path":"a.txt","expiresInSeconds":99999999})") == ErrorCode::InvalidArgument);
}

TEST_CASE("an archive is a tar, also to a client that knows only bytes", "[unit][rest]") {
    House house;
    const auto type = [&house](const std::string& accept) {
        FakeRequest request("GET", "/v1/workspaces/" + kWorkspace + "/archive?path=dir");
        if (!accept.empty()) request.with("Accept", accept);
        return headerOf(house.rest.handle(request), "Content-Type");
    };
    CHECK(type("") == "application/x-tar");
    CHECK(type("*/*") == "application/x-tar");
    CHECK(type("application/octet-stream, application/x-tar") == "application/x-tar");
    CHECK(type("application/octet-stream, application/problem+json") == "application/octet-stream");
}

TEST_CASE("a compressed archive is refused with 415", "[unit][rest]") {
    House house;
    const auto status = [&](const std::string& header, const std::string& value) {
        FakeRequest request("PUT", kWorkspacePath + "/archive", "bytes");
        request.with(header, value);
        return house.rest.handle(request).status;
    };
    CHECK(status("Content-Type", "application/gzip") == 415);
    CHECK(status("Content-Type", "application/zip") == 415);
    CHECK(status("Content-Encoding", "gzip") == 415);
    CHECK(status("Content-Type", "application/x-tar") == 200);
    FakeRequest file("GET", kWorkspacePath + "/archive?path=a.txt");
    CHECK_THROWS_AS(house.rest.handle(file), Error);
}
