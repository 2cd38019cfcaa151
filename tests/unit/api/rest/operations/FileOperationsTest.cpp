#include <catch2/catch.hpp>

#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kFiles = "/v1/workspaces/" + kWorkspace + "/files";

api::Response get(House& house, const std::string& path, const std::string& header = {},
                  const std::string& value = {}) {
    FakeRequest request("GET", kFiles + "/" + path);
    if (!header.empty()) request.with(header, value);
    return house.rest.handle(request);
}

}  // namespace

TEST_CASE("a multipart form is refused before a file is written", "[unit][rest]") {
    House house;
    const auto put = [&house](const std::string& type) {
        FakeRequest request("PUT", kFiles + "/a.txt", "--b\r\n\r\nx\r\n--b--\r\n");
        request.with("Content-Type", type);
        return house.rest.handle(request);
    };
    const api::Response refused = put("multipart/form-data; boundary=b");
    CHECK(refused.status == 415);
    const Json body = parseJson(bodyOf(refused));
    CHECK(body.at("errorCode") == "UNSUPPORTED_MEDIA_TYPE");
    CHECK(body.at("hint").get<std::string>().find("curl -T") != std::string::npos);
    CHECK(house.workspaces.filesOf(kWorkspace).at("a.txt") == "hello world");
    for (const char* type :
         {"text/plain", "application/x-www-form-urlencoded", "multipart/mixed"}) {
        CHECK(put(type).status == 200);
    }
}

TEST_CASE("a file is served whole, with headers that keep a browser from running it",
          "[unit][rest]") {
    House house;
    const api::Response response = get(house, "a.txt");
    CHECK(bodyOf(response) == "hello world");
    CHECK(headerOf(response, "Content-Type") == "application/octet-stream");
    CHECK(headerOf(response, "X-Content-Type-Options") == "nosniff");
    CHECK(headerOf(response, "Content-Disposition") == "attachment");
    CHECK(headerOf(response, "ETag") == "\"e1\"");
    CHECK(headerOf(response, "X-File-Mode") == "0644");
}

TEST_CASE("ranges, conditions and their refusals follow HTTP", "[unit][rest]") {
    House house;
    const api::Response part = get(house, "a.txt", "Range", "bytes=6-");
    CHECK(part.status == 206);
    CHECK(bodyOf(part) == "world");
    CHECK(headerOf(part, "Content-Range") == "bytes 6-10/11");
    const api::Response behind = get(house, "a.txt", "Range", "bytes=11-");
    CHECK(behind.status == 416);
    CHECK(headerOf(behind, "Content-Range") == "bytes */11");
    CHECK(get(house, "a.txt", "Range", "bytes=0-1,3-4").status == 200);
    CHECK(get(house, "a.txt", "If-None-Match", "\"x\", W/\"e1\"").status == 304);
    CHECK(get(house, "a.txt", "If-None-Match", "\"e2\"").status == 200);

    FakeRequest stale("GET", kFiles + "/a.txt");
    stale.with("Range", "bytes=0-0").with("If-Range", "\"e0\"");
    CHECK(house.rest.handle(stale).status == 200);
}

TEST_CASE("a large file is streamed with its length", "[unit][rest]") {
    House house;
    house.workspaces.filesOf(kWorkspace)["big"] = std::string(1U << 20U, 'b');
    const api::Response response = get(house, "big");
    CHECK(std::holds_alternative<api::BodyWriter>(response.body));
    CHECK(response.length == 1U << 20U);
    CHECK(bodyOf(response) == house.workspaces.filesOf(kWorkspace)["big"]);
}

TEST_CASE("a file that changes under the reader is an error, not a mixture", "[unit][rest]") {
    House house;
    house.workspaces.change_before_read = true;
    CHECK_THROWS_AS(get(house, "a.txt"), Error);
}

TEST_CASE("HEAD of a file has its length and reads no content", "[unit][rest]") {
    House house;
    house.workspaces.change_before_read = true;  // a read would fail
    FakeRequest request("HEAD", kFiles + "/a.txt");
    const api::Response response = house.rest.handle(request);
    CHECK(response.status == 200);
    CHECK(response.length == 11U);
}

TEST_CASE("directories and bad paths are refused", "[unit][rest]") {
    House house;
    CHECK_THROWS_AS(get(house, "dir"), Error);
    CHECK_THROWS_AS(get(house, ""), Error);
    CHECK_THROWS_AS(get(house, std::string(4097, 'p')), Error);
    CHECK_THROWS_AS(get(house, "missing"), Error);
}

TEST_CASE("a file is written with its mode, path and bytes", "[unit][rest]") {
    House house;
    FakeRequest put("PUT", kFiles + "/d/e%20f/g%2Fh", std::string("\0bytes\xFF", 7));
    put.with("X-File-Mode", "0755");
    const api::Response response = house.rest.handle(put);
    CHECK(response.status == 200);
    CHECK(house.workspaces.filesOf(kWorkspace).at("d/e f/g/h") == std::string("\0bytes\xFF", 7));
    CHECK(house.workspaces.mode == 0755U);
    for (const char* mode : {"", "9", "0999", "04755", "rwx"}) {
        FakeRequest bad("PUT", kFiles + "/x", "y");
        bad.with("X-File-Mode", mode);
        CHECK_THROWS_AS(house.rest.handle(bad), Error);
    }
}

TEST_CASE("lists, moves, directories and removals pass their arguments on", "[unit][rest]") {
    House house;
    house.workspaces.filesOf(kWorkspace)["d/f"] = "after the cursor";
    FakeRequest list("GET", kFiles + "?path=d&recursive=true&limit=7&cursor=c");
    const Json page = parseJson(bodyOf(house.rest.handle(list)));
    CHECK(house.workspaces.listed == "d recursive 7 c");
    CHECK(page.at("items").at(0).at("modifiedAt") == "2023-11-14T22:13:20.000Z");
    FakeRequest remove("DELETE", kFiles + "/d?recursive=true");
    house.rest.handle(remove);
    CHECK(house.workspaces.removed == "d recursive");
    FakeRequest move("POST", kFiles + ":move", R"({"from":"a","to":"b"})");
    move.json();
    house.rest.handle(move);
    CHECK(house.workspaces.moved == "a b");
}
