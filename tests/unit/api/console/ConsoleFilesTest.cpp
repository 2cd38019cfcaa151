#include <catch2/catch.hpp>
#include <string>

#include "api/console/ConsoleFile.h"

using namespace hearth::console;

TEST_CASE("the program contains each file of the console, whole and with its type",
          "[unit][console]") {
    const ConsoleFile* page = findConsoleFile("index.html");
    REQUIRE(page);
    CHECK(page->type == "text/html; charset=utf-8");
    CHECK(page->bytes.ends_with("</html>\n"));
    CHECK(page->etag.front() == '"');
    REQUIRE(findConsoleFile("main.js"));
    CHECK(findConsoleFile("icon.svg")->type == "image/svg+xml");
    REQUIRE(findConsoleFile("xterm.js"));
    CHECK(findConsoleFile("xterm.js")->bytes.find("window.Terminal") != std::string::npos);
    CHECK(findConsoleFile("xterm.css")->bytes.size() > 1000);
    CHECK(findConsoleFile("") == nullptr);
    CHECK(findConsoleFile("../main.js") == nullptr);
    CHECK(findConsoleFile("nothing.js") == nullptr);
}

TEST_CASE("a page of the console refers only to existing files of the console", "[unit][console]") {
    const std::string page(findConsoleFile("index.html")->bytes);
    for (std::size_t at = page.find("=\"/console/"); at != std::string::npos;
         at = page.find("=\"/console/", at + 1)) {
        const std::size_t begin = at + std::string("=\"/console/").size();
        const std::string name = page.substr(begin, page.find('"', begin) - begin);
        INFO(name);
        CHECK(findConsoleFile(name) != nullptr);
    }
    CHECK(page.find("http:") == std::string::npos);
    CHECK(page.find("https:") == std::string::npos);
    CHECK(page.find(" style=") == std::string::npos);
    CHECK(page.find("<script>") == std::string::npos);
}
