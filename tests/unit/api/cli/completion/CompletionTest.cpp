#include <algorithm>
#include <catch2/catch.hpp>

#include "api/cli/Cli.h"
#include "api/cli/completion/Completion.h"
#include "api/cli/terminal/EscapeKeys.h"

using namespace hearth::cli;

namespace {

std::vector<std::string> complete(const std::vector<std::string>& words) {
    const Lookup lookup = [](const std::string& kind, const std::string&) {
        std::vector<Candidate> all;
        if (kind == "@workspace") all = {{"ws_1", "python"}, {"ws_2", ""}};
        if (kind == "@pool") all = {{"python", ""}};
        if (kind == "@remote")
            all = {{"ws_1:", ""}, {"ws_\x1b[31m:", ""}, {"ws_\xe2\x80\xae:", ""}};
        return all;
    };
    std::vector<std::string> found;
    for (const Candidate& one : completions(allCommands(), words, lookup)) {
        found.push_back(one.word);
    }
    return found;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("commands, flags, their values and arguments are completed", "[unit][cli]") {
    CHECK(complete({"she"}) == Words{"shell"});
    CHECK(complete({"help", "mcp-"}) == Words{"mcp-config"});
    CHECK(complete({"get", "--out"}) == Words{"--output"});
    CHECK(complete({"get", "pools", "-o", "j"}) == Words{"json"});
    CHECK(complete({"get", "--output=j"}) == Words{"--output=json"});
    CHECK(complete({"get", "workspace", ""}) == Words{"ws_1", "ws_2"});
    CHECK(complete({"get", "pools", ""}) == Words{"python"});
    CHECK(complete({"get", "pools", "python", ""}).empty());
    CHECK(complete({"delete", "workspace", "ws_1", "ws_"}) == Words{"ws_1", "ws_2"});
    CHECK(complete({"shell", "-p", ""}) == Words{"python"});
    CHECK(complete({"shell", "ws_1", "--", "py"}) == Words{":file"});
    CHECK(complete({"cp", "a", "ws"}) == Words{"ws_1:", ":file"});  // and local files
    CHECK(complete({"mcp-config", "co"}) == Words{"codex"});
    CHECK(complete({"serve", "--config", ""}) == Words{":file"});
    CHECK(complete({"nosuch", ""}).empty());
    CHECK(complete({}).empty());
}

TEST_CASE("every command and every flag of it can be completed and is explained", "[unit][cli]") {
    for (const Command& command : allCommands()) {
        INFO(command.spec.name);
        CHECK(complete({command.spec.name}).size() >= 1);
        const Words flags = complete({command.spec.name, "--"});
        CHECK(flags.size() == command.spec.flags.size() + 1);
        CHECK(std::ranges::find(flags, "--help") != flags.end());
        CHECK(command.spec.details.find("hearth " + command.spec.name) != std::string::npos);
    }
}

TEST_CASE("there is a script for each shell, and a suggestion for others", "[unit][cli]") {
    for (const char* shell : {"bash", "zsh", "fish"}) {
        CHECK(completionScript(shell).find("__complete") != std::string::npos);
    }
    CHECK_THROWS_AS(completionScript("csh"), UsageError);
}

TEST_CASE("Enter, tilde and dot leave a shell, and nothing else does", "[unit][cli]") {
    const auto typed = [](const std::vector<std::string>& pieces) {
        EscapeKeys keys;
        std::string out;
        for (const std::string& piece : pieces) out += keys.pass(piece);
        return out + (keys.left() ? "|left" : "");
    };
    CHECK(typed({"ls ~.\r"}) == "ls ~.\r");
    CHECK(typed({"~.", "more"}) == "|left");
    CHECK(typed({"ls\r", "~", ".x"}) == "ls\r|left");
    CHECK(typed({"~~."}) == "~.");
    CHECK(typed({"~ls\r"}) == "~ls\r");
}
