#include <catch2/catch.hpp>
#include <map>

#include "api/command/Options.h"

using namespace hearth::cli;

namespace {

CommandSpec spec() {
    return {.name = "try",
            .arguments = "[FILE] [-- ARG…]",
            .summary = "Try.",
            .details = "",
            .flags = {Flag{.name = "data-dir", .letter = 'd', .value = "DIR", .help = "Where"},
                      Flag{.name = "pools", .value = "FILE", .help = "Which", .repeats = true},
                      Flag{.name = "json", .help = "JSON"},
                      Flag{.name = "code",
                           .letter = 'c',
                           .value = "CODE",
                           .help = "What",
                           .environment = false}},
            .least = 0,
            .most = 1,
            .rest = true};
}

Options parse(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& variables = {}) {
    return Options::parse(spec(), arguments, [&](const std::string& name) {
        const auto it = variables.find(name);
        return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
    });
}

std::string hintOf(const std::vector<std::string>& arguments) {
    try {
        parse(arguments);
    } catch (const UsageError& e) {
        return e.hint();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a flag takes its value after a blank, after = and behind its letter", "[unit][cli]") {
    CHECK(parse({"--data-dir", "a"}).get("data-dir") == "a");
    CHECK(parse({"--data-dir=a=b"}).get("data-dir") == "a=b");
    CHECK(parse({"-d", "a"}).get("data-dir") == "a");
    CHECK(parse({"-da"}).get("data-dir") == "a");
    CHECK(parse({"-c", "-1"}).get("code") == "-1");
    CHECK(parse({"--code="}).get("code") == "");
}

TEST_CASE("arguments that Poco alone would misread are read as written", "[unit][cli]") {
    CHECK(parse({"-da"}).get("data-dir") == "a");
    CHECK(parse({"-co"}).get("code") == "o");
    CHECK(parse({"-cC=1"}).get("code") == "C=1");
    CHECK(parse({"-c=x"}).get("code") == "x");
    CHECK(parse({"-c", "--json"}).get("code") == "--json");
    CHECK(parse({"-c", "--"}).get("code") == "--");
    CHECK(parse({"-c", ""}).get("code") == "");
    CHECK(parse({"--code=a:b"}).get("code") == "a:b");
    CHECK_FALSE(parse({"--json="}).on("json"));
    CHECK(parse({"one", "--json"}).on("json"));
    for (const char* inexact : {"--dat=x", "--DATA-DIR=x", "--data-dir:x", "--js", "-J"}) {
        CAPTURE(inexact);
        CHECK_THROWS_AS(parse({inexact}), UsageError);
    }
}

TEST_CASE("a flag's name may begin the names of others", "[unit][cli]") {
    CommandSpec names = spec();
    for (const char* name : {"pool-name", "pool-size", "pool"}) {
        names.flags.push_back(Flag{.name = name, .value = "N"});
    }
    const Options options =
        Options::parse(names, {"--pool", "x"}, [](const std::string&) { return std::nullopt; });
    CHECK(options.get("pool") == "x");
}

TEST_CASE("the command line outranks the environment, and each value names its source",
          "[unit][cli]") {
    const std::map<std::string, std::string> variables = {{"HEARTH_DATA_DIR", "e"},
                                                          {"HEARTH_POOLS", "a.yaml,b.yaml"},
                                                          {"HEARTH_JSON", "true"},
                                                          {"HEARTH_CODE", "ignored"}};
    const Options given = parse({"--data-dir", "f"}, variables);
    CHECK(given.get("data-dir") == "f");
    CHECK(given.source("data-dir") == Source::Flag);
    CHECK(given.all("pools") == std::vector<std::string>{"a.yaml", "b.yaml"});
    CHECK(given.source("pools") == Source::Env);
    CHECK(given.on("json"));
    CHECK_FALSE(given.get("code"));
    CHECK(given.source("code") == Source::Default);
    CHECK(parse({}, variables).get("data-dir") == "e");
}

TEST_CASE("a flag can switch off a switch that the environment sets", "[unit][cli]") {
    CHECK_FALSE(parse({"--json=false"}, {{"HEARTH_JSON", "1"}}).on("json"));
    CHECK_THROWS_AS(parse({}, {{"HEARTH_JSON", "perhaps"}}), UsageError);
    CHECK_THROWS_AS(parse({"--json=perhaps"}), UsageError);
}

TEST_CASE("an unknown flag is an error that suggests the nearest", "[unit][cli]") {
    CHECK(hintOf({"--datadir", "x"}) == "did you mean --data-dir?");
    CHECK(hintOf({"--jsno"}) == "did you mean --json?");
    CHECK(hintOf({"--qqqqqqq"}) == "write flags of the program after --; see `hearth try --help`");
    CHECK_THROWS_AS(parse({"-x"}), UsageError);
}

TEST_CASE("letters of switches may stand together, before one that takes a value", "[unit][cli]") {
    CommandSpec switches = spec();
    switches.flags.push_back(Flag{.name = "all", .letter = 'a'});
    switches.flags.push_back(Flag{.name = "quiet", .letter = 'q'});
    switches.flags.push_back(Flag{.name = "terminal", .cluster = "it"});
    const auto given = [&](const std::vector<std::string>& words) {
        return Options::parse(switches, words, [](const std::string&) { return std::nullopt; });
    };
    CHECK(given({"-aq"}).on("all"));
    CHECK(given({"-qa"}).on("quiet"));
    const Options valued = given({"-aqd", "x"});
    CHECK(valued.on("quiet"));
    CHECK(valued.get("data-dir") == "x");
    CHECK(given({"-it"}).on("terminal"));
    CHECK(given({"-ti"}).on("terminal"));
    CHECK_FALSE(given({"-a=false"}).on("all"));
    CHECK_THROWS_AS(given({"-ax"}), UsageError);
}

TEST_CASE("words after -- are operands if no program takes them", "[unit][cli]") {
    CommandSpec plain = spec();
    plain.rest = false;
    const Options options =
        Options::parse(plain, {"--", "-x.py"}, [](const std::string&) { return std::nullopt; });
    CHECK(options.positional() == std::vector<std::string>{"-x.py"});
}

TEST_CASE("values that are missing, doubled or too many are errors", "[unit][cli]") {
    CHECK_THROWS_AS(parse({"--data-dir"}), UsageError);
    CHECK_THROWS_AS(parse({"-d", "a", "--data-dir=b"}), UsageError);
    CHECK_THROWS_AS(parse({"one", "two"}), UsageError);
    CHECK(parse({"--pools", "a", "--pools", "b"}).all("pools").size() == 2);
}

TEST_CASE("words after -- are not parsed", "[unit][cli]") {
    const Options options = parse({"script.py", "--", "--json", "-x"});
    CHECK(options.positional() == std::vector<std::string>{"script.py"});
    CHECK(options.rest() == std::vector<std::string>{"--json", "-x"});
    CHECK_FALSE(options.on("json"));
}

TEST_CASE("a single dash is an argument", "[unit][cli]") {
    CHECK(parse({"-"}).positional() == std::vector<std::string>{"-"});
}

TEST_CASE("the help names every flag, its letter and its variable", "[unit][cli]") {
    CHECK(parse({"--json", "-h"}).help());
    const std::string text = helpText(spec());
    for (const char* part : {"-d, --data-dir DIR", "HEARTH_DATA_DIR", "--json", "may be repeated",
                             "-h, --help", "exit status: 0 ok"}) {
        CHECK(text.find(part) != std::string::npos);
    }
    CHECK(text.find("HEARTH_CODE") == std::string::npos);
}

TEST_CASE("numbers and durations are checked where they are read", "[unit][cli]") {
    CHECK(parse({"-d", "7"}).number("data-dir", 1, 1, 10) == 7);
    CHECK(parse({}).number("data-dir", 1, 1, 10) == 1);
    CHECK_THROWS_AS(parse({"-d", "11"}).number("data-dir", 1, 1, 10), UsageError);
    CHECK_THROWS_AS(parse({"-d", "7x"}).number("data-dir", 1, 1, 10), UsageError);
    CHECK(parse({"-d", "90s"}).duration("data-dir") == std::chrono::seconds(90));
    CHECK(parse({"-d", "1.5"}).duration("data-dir") == std::chrono::milliseconds(1500));
    CHECK_THROWS_AS(parse({"-d", "soon"}).duration("data-dir"), UsageError);
    CHECK_THROWS_AS(parse({"-d", "."}).duration("data-dir"), UsageError);
    CHECK(parse({"-d", "512m"}).size("data-dir") == 512U << 20U);
    CHECK(parse({"-d", "1g"}).size("data-dir") == 1U << 30U);
    CHECK(parse({"-d", "64Mi"}).size("data-dir") == 64U << 20U);
    CHECK(parse({"-d", "64M"}).size("data-dir") == 64'000'000);
    CHECK_THROWS_AS(parse({"-d", "m"}).size("data-dir"), UsageError);
}
