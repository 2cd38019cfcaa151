#include "controller/spec/PoolSpec.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

std::string manifestText(const std::string& spec = {}, const std::string& name = "p") {
    return "apiVersion: hearth.dev/v1alpha1\n"  // line 1
           "kind: SandboxPool\n"
           "metadata:\n"
           "  name: " +
           name +
           "\n"
           "spec:\n"
           "  template:\n"
           "    image: python\n" +  // line 7
           spec;
}

std::string complaint(const std::string& text) {
    const Error error = errorOf([&] { parsePoolYaml(text, "p.yaml"); });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    return error.what();
}

bool says(const std::string& text, const std::string& part) {
    const std::string what = complaint(text);
    INFO(what);
    return what.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a file may hold several manifests", "[unit][controller]") {
    const auto pools = parsePoolYaml(
        "---\n" + manifestText("", "a") + "---\n---\n" + manifestText("  warm: {min: 1}\n", "b"),
        "f");
    REQUIRE(pools.size() == 2);
    CHECK(pools[0].name == "a");
    CHECK(pools[1].spec.warm_min == 1);
}

TEST_CASE("errors in a manifest file name the line", "[unit][controller]") {
    CHECK(says(manifestText("  warm:\n    min: many\n"), "p.yaml:9: /spec/warm/min"));
    CHECK(says(manifestText("  warm:\n    max: 3\n    minimum: 1\n"),
               "p.yaml:10: /spec/warm/minimum"));
    CHECK(says(manifestText("  warm: [1\n"), "p.yaml:"));
    CHECK(says("", "no manifest"));
    CHECK(says("# nothing\n", "no manifest"));
    CHECK(says("just words\n", "an object"));
}

TEST_CASE("a missing field is reported at its parent's line", "[unit][controller]") {
    const std::string text =
        "apiVersion: hearth.dev/v1alpha1\nkind: SandboxPool\nmetadata:\n  name: p\n"
        "spec:\n  template:\n    storage: Disk\n";
    CHECK(says(text, "p.yaml:6: /spec/template/image"));
}

TEST_CASE("a key that stands twice is refused", "[unit][controller]") {
    CHECK(says(manifestText("  warm:\n    min: 1\n    min: 2\n"), "p.yaml:10: the key \"min\""));
}

TEST_CASE("plain scalars mean what YAML 1.2 says", "[unit][controller]") {
    CHECK(parsePoolYaml(manifestText("  warm: {min: 010}\n"), "f")[0].spec.warm_min == 10);
    // "yes" and "on" are words, not booleans.
    CHECK_THROWS_AS(parsePoolYaml(manifestText("  lifecycle: {countRunningWork: yes}\n"), "f"),
                    Error);
    CHECK_NOTHROW(parsePoolYaml(manifestText("  lifecycle: {countRunningWork: true}\n"), "f"));
    CHECK(parsePoolYaml("apiVersion: hearth.dev/v1alpha1\nkind: SandboxPool\nmetadata: {name: on}\n"
                        "spec: {template: {image: yes}}\n",
                        "f")[0]
              .spec.image == "yes");
    // A quoted number is text.
    CHECK(says(manifestText("  warm: {min: \"1\"}\n"), "/spec/warm/min"));
    CHECK(parsePoolYaml(manifestText("", "\"12\""), "f")[0].name == "12");
    CHECK(says(manifestText("", "12"), "/metadata/name"));
    CHECK(says(manifestText("  warm: {min: 0x2}\n"), "/spec/warm/min"));
    CHECK(parsePoolYaml(manifestText("  warm: ~\n"), "f")[0].spec.warm_min == 2);
}

TEST_CASE("documents that grow when read are refused quickly", "[unit][controller]") {
    std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
        for (int j = 0; j < 9; ++j) bomb += "," + before;
        bomb += "]\n";
    }
    CHECK(says(bomb, "too many values"));
    CHECK(says("a: " + std::string(40, '[') + std::string(40, ']') + "\n", "nested too deeply"));
    CHECK_FALSE(complaint("a: " + std::string(100'000, '[')).empty());
    CHECK(says(std::string((1U << 20U) + 1, '#'), "larger than 1 MiB"));
}
