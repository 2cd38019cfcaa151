#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "api/cli/commands/McpConfig.h"
#include "api/command/Options.h"
#include "api/serve/process/ProgramPath.h"
#include "base/Json.h"

using namespace hearth;
using namespace hearth::cli;

namespace {

const std::string kUrl = "http://127.0.0.1:8080";
const std::string kProgram = "/opt/bin/hearth";

Json entry(const std::string& client, const std::string& transport, bool token = false) {
    const Json document = parseJson(makeMcpConfig(client, transport, kUrl, kProgram, token).text);
    return document[client == "vscode" ? "servers" : "mcpServers"]["hearth"];
}

/// The subset of TOML that the snippets use: tables, strings, arrays of strings.
bool isSimpleToml(const std::string& text) {
    static const std::regex kLine(
        R"(^$|^\[[A-Za-z0-9_.]+\]$|^[A-Za-z0-9_]+ = ("[^"\\]*"|\["[^"\\]*"(, "[^"\\]*")*\])$)");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!std::regex_match(line, kLine)) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("each client gets valid JSON for HTTP and for stdio", "[unit][cli]") {
    for (const char* client : {"claude-code", "cursor", "vscode"}) {
        CAPTURE(client);
        CHECK(entry(client, "http")["url"] == kUrl + "/mcp");
        CHECK_FALSE(entry(client, "").contains("headers"));
        CHECK(entry(client, "stdio")["command"] == kProgram);
        CHECK(entry(client, "stdio")["args"] == Json::array({"mcp", "--root", "/path/you/choose"}));
        CHECK(entry(client, "stdio")["env"]["HEARTH_URL"] == kUrl);
        CHECK(
            entry(client, "http", true)["headers"]["Authorization"].get<std::string>().starts_with(
                "Bearer ${"));
    }
    CHECK(entry("claude", "")["command"] == kProgram);
}

TEST_CASE("codex gets valid TOML", "[unit][cli]") {
    for (const bool token : {false, true}) {
        for (const char* transport : {"http", "stdio"}) {
            const std::string text = makeMcpConfig("codex", transport, kUrl, kProgram, token).text;
            CAPTURE(text);
            CHECK(isSimpleToml(text));
            CHECK(text.starts_with("[mcp_servers.hearth]\n"));
            CHECK((text.find("HEARTH_TOKEN") != std::string::npos) == token);
        }
    }
}

TEST_CASE("the configuration of vscode prompts for the token instead of containing it",
          "[unit][cli]") {
    const Json document = parseJson(makeMcpConfig("vscode", "http", kUrl, kProgram, true).text);
    CHECK(document["inputs"][0]["id"] == "hearth-token");
    CHECK(document["inputs"][0]["password"] == true);
}

TEST_CASE("unknown clients and impossible transports are refused", "[unit][cli]") {
    CHECK_THROWS_AS(makeMcpConfig("claude-cod", "", kUrl, kProgram, false), UsageError);
    CHECK_THROWS_AS(makeMcpConfig("cursor", "", "localhost:8080", kProgram, false), UsageError);
    CHECK_THROWS_AS(makeMcpConfig("cursor", "http", "unix:///x", kProgram, false), UsageError);
    CHECK_NOTHROW(makeMcpConfig("cursor", "stdio", "unix:///x", kProgram, false));
    CHECK_THROWS_AS(makeMcpConfig("claude", "http", kUrl, kProgram, false), UsageError);
    CHECK_THROWS_AS(makeMcpConfig("cursor", "carrier-pigeon", kUrl, kProgram, false), UsageError);
}

TEST_CASE("a program that is not first on the PATH is called by its own path", "[unit][cli]") {
    const std::string program = programPath();
    CHECK(program.front() == '/');
    CHECK(programWord(program, nullptr) == program);
    CHECK(programWord(program, "/nowhere::/dev/null") == program);
    std::string directory = "/tmp/hearth-unit-XXXXXX";
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    std::filesystem::create_symlink(program, directory + "/hearth");
    CHECK(programWord(program, ("/nowhere:" + directory).c_str()) == "hearth");
    std::filesystem::remove(directory + "/hearth");
    std::filesystem::create_symlink("/bin/sh", directory + "/hearth");
    CHECK(programWord(program, directory.c_str()) == program);
    std::filesystem::remove_all(directory);
}
