#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/yaml/Yaml.h"

using namespace hearth;

namespace {

std::string yamlProblem(const std::string& text, const YamlLimits& limits = {}) {
    try {
        parseYaml(text, limits);
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::InvalidArgument);
        return e.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("a YAML text is read by the core schema of YAML 1.2", "[unit][yaml]") {
    const Json json = parseYaml(
        "---\nname: yes\nquoted: \"7\"\noctal: 010\nless: -3\nhalf: 0.5\nno: null\n"
        "list: [1, {a: b}]\nflag: true\nversion: 1.1.0\n");
    CHECK(json == Json::parse(R"({"name":"yes","quoted":"7","octal":10,"less":-3,"half":0.5,
        "no":null,"list":[1,{"a":"b"}],"flag":true,"version":"1.1.0"})"));
}

TEST_CASE("a YAML text that is too large, invalid or has a doubled key is refused with its line",
          "[unit][yaml]") {
    CHECK(yamlProblem("a: 1\nb: 2\na: 3\n") == "line 3: the key \"a\" is given twice");
    CHECK(yamlProblem("a: 1\n---\nb: 2\n") == "line 1: must be one document, not 2");
    CHECK(yamlProblem("") == "line 1: must be one document, not 0");
    CHECK(yamlProblem("a: 1\n[x]: 2\n") == "line 2: a key must be a name");
    CHECK(yamlProblem("a: [1\n").starts_with("line "));
    CHECK(yamlProblem("a: \"\xff\"\n").find("line 1") == 0);
    CHECK(yamlProblem(std::string(40, '[') + std::string(40, ']')) == "line 1: nested too deeply");
    std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string name = "a" + std::to_string(i);
        const std::string before = "*a" + std::to_string(i - 1);
        laughs.append(name).append(": &").append(name).append(" [").append(before);
        for (int times = 1; times < 4; ++times) laughs.append(", ").append(before);
        laughs.append("]\n");
    }
    CHECK(yamlProblem(laughs).find("too many values") != std::string::npos);
    CHECK(yamlProblem("abcdef", {4}) == "line 1: the text is larger than 4 bytes");
}
