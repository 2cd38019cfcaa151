#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Json.h"
#include "controller/egress/mirror/npm/NpmIndex.h"
#include "controller/egress/mirror/pypi/PypiIndex.h"
#include "controller/egress/policy/Refused.h"

// Pages of package indexes, as they are received and as sandboxes get them.

namespace hearth::egress {
namespace {

const std::string kFileHash(64, 'a');
const std::string kBase = "https://index.example/simple/foo/";

}  // namespace

TEST_CASE("a project's HTML page is read", "[unit][egress]") {
    const std::string html =
        "<!DOCTYPE html><html><head><title>Links for foo</title></head><body><h1>foo</h1>\n"
        "<a href=\"https://files.example/ab/foo-1.0-py3-none-any.whl#sha256=" +
        kFileHash +
        "\" data-requires-python=\"&gt;=3.8\" data-core-metadata=\"sha256=" + kFileHash +
        "\">foo-1.0-py3-none-any.whl</a><br/>\n"
        "<A HREF='../../packages/foo%2B1-2.0.tar.gz' data-yanked='broken &amp; old'>foo</A>\n"
        "<a data-x=\"a > b\" href=foo-3.0.zip#md5=0123>foo-3.0.zip</a>\n"
        "<a href=\"javascript:alert(1)\">x</a><a href=\"ftp://x.example/foo-4.0.zip\">x</a>"
        "<a href=\"file:///etc/passwd\">x</a><a>nothing</a><a href=\"../\">up</a>";
    const PypiProject project = parsePypi("foo", kBase, "text/html", html);
    REQUIRE(project.files.size() == 3);
    CHECK(project.files[0].url == "https://files.example/ab/foo-1.0-py3-none-any.whl");
    CHECK(project.files[0].sha256 == kFileHash);
    CHECK(project.files[0].requires_python == ">=3.8");
    CHECK(project.files[0].metadata_sha256 == kFileHash);
    CHECK_FALSE(project.files[0].yanked);
    CHECK(project.files[1].filename == "foo+1-2.0.tar.gz");
    CHECK(project.files[1].url == "https://index.example/packages/foo%2B1-2.0.tar.gz");
    CHECK(project.files[1].yanked == "broken & old");
    CHECK(project.files[1].sha256.empty());
    CHECK(project.files[2].url == kBase + "foo-3.0.zip");
    CHECK(project.find("foo-3.0.zip") == &project.files[2]);
    CHECK(project.find("foo-9.zip") == nullptr);
}

TEST_CASE("a project's JSON page is read, and what makes no sense is left out", "[unit][egress]") {
    const Json page{
        {"meta", {{"api-version", "1.1"}}},
        {"name", "foo"},
        {"files",
         {{{"filename", "foo-1.0.tar.gz"},
           {"url", "/packages/foo-1.0.tar.gz"},
           {"hashes", {{"sha256", std::string(64, 'B')}}},
           {"requires-python", nullptr},
           {"yanked", false},
           {"core-metadata", true},
           {"size", 1234},
           {"upload-time", "2024-01-02T03:04:05.678Z"}},
          {{"filename", "../evil.whl"}, {"url", "/x"}, {"hashes", Json::object()}},
          {{"filename", "foo-2.whl"}, {"url", "gopher://x/"}, {"hashes", Json::object()}},
          "text",
          {{"filename", 1}}}}};
    const PypiProject project =
        parsePypi("foo", kBase, "application/vnd.pypi.simple.v1+json", dumpJson(page));
    REQUIRE(project.files.size() == 1);
    CHECK(project.files[0].url == "https://index.example/packages/foo-1.0.tar.gz");
    CHECK(project.files[0].sha256 == std::string(64, 'b'));
    CHECK_FALSE(project.files[0].metadata_sha256);  // its expected hash is unknown
    CHECK(project.files[0].size == 1234);
    CHECK(parseJson(pypiJson(project, "/files")).at("files").at(0).at("upload-time") ==
          "2024-01-02T03:04:05.678Z");
    CHECK_THROWS_WITH(parsePypi("foo", kBase, "application/json", "{\"files\": 3}"),
                      "the index's project page has no list of files");
    CHECK_THROWS_WITH(parsePypi("foo", kBase, "application/json", "{broken"),
                      Catch::StartsWith("the index's page: "));
}

TEST_CASE("entities are read, and ampersands that begin none cost no more than letters",
          "[unit][egress]") {
    const auto requires_of = [](const std::string& text) {
        const std::string html =
            "<a href=\"foo-1.0.zip\" data-requires-python=\"" + text + "\">foo</a>";
        return parsePypi("foo", kBase, "text/html", html).files.at(0).requires_python;
    };
    CHECK(requires_of("&lt;4&amp;&gt;=3&#39;&#x27;&apos;&quot;") == "<4&>=3'''\"");
    CHECK(requires_of("a&b;&&amp;&;&amp") == "a&b;&&&;&amp");
    const std::string many(20U << 20U, '&');  // a search to the end for each '&' would take hours
    CHECK(requires_of(many) == many);
}

TEST_CASE("a page that is written is read the same", "[unit][egress]") {
    PypiProject project;
    project.name = "foo";
    PypiFile file;
    file.filename = "foo-1.0+local-py3-none-any.whl";
    file.url = "https://elsewhere.example/secret/path.whl";
    file.sha256 = kFileHash;
    file.requires_python = ">=3.8,<\"4\"";
    file.yanked = "";
    file.metadata_sha256 = kFileHash;
    project.files = {file};
    const auto same = [&](const PypiProject& read) {
        REQUIRE(read.files.size() == 1);
        CHECK(read.files[0].filename == file.filename);
        CHECK(read.files[0].sha256 == file.sha256);
        CHECK(read.files[0].requires_python == file.requires_python);
        CHECK(read.files[0].yanked == file.yanked);
        CHECK(read.files[0].metadata_sha256 == file.metadata_sha256);
        CHECK(read.files[0].url ==
              "http://127.0.0.1:3128/pypi/files/foo/foo-1.0%2Blocal-py3-none-any.whl");
    };
    const std::string base = "http://127.0.0.1:3128/pypi/simple/foo/";
    same(parsePypi("foo", base, "text/html", pypiHtml(project, "/pypi/files")));
    same(parsePypi("foo", base, "application/json", pypiJson(project, "/pypi/files")));
    CHECK(pypiHtml(project, "/pypi/files").find("elsewhere") == std::string::npos);
}

TEST_CASE("a project's name has one spelling", "[unit][egress]") {
    CHECK(normalisedProject("Foo.Bar__baz-") == std::nullopt);
    CHECK(normalisedProject("Foo.Bar__baz") == "foo-bar-baz");
    for (const char* wrong : {"", "-x", "a/b", "a b", "..", "a%2e", "x\n", "ä"}) {
        CHECK_FALSE(normalisedProject(wrong).has_value());
    }
    CHECK(npmName("left-pad") == "left-pad");
    CHECK(npmName("@types/node") == "@types/node");
    for (const char* wrong : {"", "@types", "@types/", "a/b", ".x", "_x", "@a/b/c", "..", "a\\b"}) {
        CHECK_FALSE(npmName(wrong).has_value());
    }
}

TEST_CASE("a page that is made to harm its reader is refused", "[unit][egress]") {
    const std::string deep =
        "{\"versions\":{},\"x\":" + std::string(6'000, '[') + std::string(6'000, ']') + "}";
    CHECK_THROWS_AS(parseNpm("x", "https://r.example/x", deep, ""), Refused);
    std::string wide = "{\"versions\":{\"0\":1";
    for (int i = 1; i < 150'000; ++i) wide += ",\"" + std::to_string(i) + "\":1";
    CHECK_THROWS_AS(parseNpm("x", "https://r.example/x", wide + "}}", ""), Refused);
    CHECK_THROWS_AS(parsePypi("x", kBase, "application/json", deep), Refused);
}

TEST_CASE("a packument is rewritten to the mirror's addresses, its files known by their sha512",
          "[unit][egress]") {
    const std::string integrity =
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/"
        "SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
    const Json document{{"name", "@a/b"},
                        {"dist-tags", {{"latest", "1.0.0"}}},
                        {"versions",
                         {{"1.0.0",
                           {{"name", "@a/b"},
                            {"dist",
                             {{"tarball", "https://r.example/@a/b/-/b-1.0.0.tgz"},
                              {"integrity", "sha1-xxx " + integrity}}}}},
                          {"0.1.0", {{"dist", {{"tarball", "../b-0.1.0.tgz"}, {"shasum", "abc"}}}}},
                          {"0.0.1", "nonsense"}}}};
    const NpmPackage package = parseNpm("@a/b", "https://r.example/@a%2fb", dumpJson(document),
                                        "http://127.0.0.1:3128/npm");
    REQUIRE(package.tarballs.size() == 2);
    CHECK(package.tarballs.at("b-1.0.0.tgz").url == "https://r.example/@a/b/-/b-1.0.0.tgz");
    CHECK(package.tarballs.at("b-1.0.0.tgz").hash.key().starts_with("sha512-cf83e1357eefb8bd"));
    CHECK(package.tarballs.at("b-0.1.0.tgz").hash.key().empty());
    const Json served = parseJson(*package.document);
    CHECK(served["versions"]["1.0.0"]["dist"]["tarball"] ==
          "http://127.0.0.1:3128/npm/@a/b/-/b-1.0.0.tgz");
    CHECK(served["dist-tags"]["latest"] == "1.0.0");
    CHECK_THROWS_AS(parseNpm("x", "https://r.example/x", "[]", ""), Refused);
}

}  // namespace hearth::egress
