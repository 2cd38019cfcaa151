#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/Error.h"
#include "base/Json.h"
#include "pool/gpu/cdi/CdiDocument.h"
#include "pool/sys/Files.h"

using namespace hearth;
using namespace std::string_literals;
using namespace hearth::pool::cdi;

namespace {

std::string corpus(const std::string& name) {
    const std::string file =
        std::string(HEARTH_SOURCE_DIR "/tests/unit/pool/gpu/cdi/corpus/") + name;
    return sys::readFile(file).value();
}

/// A small correct document, which tests then spoil.
Json rightDocument() {
    return Json::parse(R"({"cdiVersion":"0.7.0","kind":"nvidia.com/gpu",
        "containerEdits":{"env":["A=1"]},
        "devices":[{"name":"one","containerEdits":{
            "deviceNodes":[{"path":"/dev/nvidia0","hostPath":"/dev/zero"}],
            "mounts":[{"hostPath":"/opt/a","containerPath":"/opt/a","type":"bind"}],
            "hooks":[{"hookName":"createRuntime","path":"/usr/bin/true"}],
            "additionalGids":[44]}}]})");
}

std::string refusal(const Json& document) {
    try {
        parseCdi(document.dump(), CdiFormat::Json);
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::InvalidArgument);
        return e.what();
    }
    return "accepted";
}

std::string refusal(const std::string& pointer, const char* value) {
    Json document = rightDocument();
    document[Json::json_pointer(pointer)] = Json::parse(value);
    return refusal(document);
}

}  // namespace

TEST_CASE("a CDI file as NVIDIA's toolkit writes it is read whole", "[unit][cdi]") {
    const CdiDocument document = parseCdi(corpus("two_gpus.yaml"), CdiFormat::Yaml);
    CHECK(document.kind == "nvidia.com/gpu");
    CHECK(document.devices.size() == 3);
    CHECK(document.edits.nodes.size() == 4);
    CHECK(document.edits.env == std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=void"});
    REQUIRE(document.edits.hooks.size() == 2);
    const CdiHook& hook = document.edits.hooks.front();
    CHECK(hook.point == HookPoint::CreateContainer);
    CHECK(hook.path == "/usr/bin/nvidia-cdi-hook");
    CHECK(hook.args.size() == 4);
    CHECK(hook.env == std::vector<std::string>{"NVIDIA_CTK_DEBUG=false"});
    CHECK_FALSE(hook.timeout_s);
    REQUIRE(document.edits.mounts.size() == 3);
    CHECK(document.edits.mounts[0] ==
          CdiMount{"/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi", false, true, true});
    CHECK_FALSE(document.edits.mounts[1].executable);
    const CdiEdits& first = document.devices.at("GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76");
    REQUIRE(first.nodes.size() == 3);
    CHECK(first.nodes[2] == CdiNode{"/dev/dri/renderD128", "/dev/dri/renderD128"});
}

TEST_CASE("a CDI file with MIG instances has numbers, modes, groups and hooks", "[unit][cdi]") {
    const CdiDocument document = parseCdi(corpus("mig.json"), CdiFormat::Json);
    const CdiEdits& mig = document.devices.at("MIG-a7d3f5b2-61c4-5d20-9f0e-2b8c7d1e4f36");
    REQUIRE(mig.nodes.size() == 2);
    CHECK(mig.nodes[0].major == 195);
    CHECK(mig.nodes[0].minor == 0);  // missing in the file, as Go omits zeros
    CHECK(mig.nodes[0].mode == 0666);
    CHECK(mig.nodes[0].permissions == "rw");
    CHECK(mig.nodes[1].minor == 12);
    CHECK(mig.nodes[1].permissions == "r");
    CHECK(document.devices.at("0:1").gids == std::set<std::uint32_t>{44, 105});
    CHECK(document.edits.env.size() == 1);  // a repeated entry counts once
    CHECK(document.edits.mounts.at(0).writable);
    CHECK(document.edits.hooks.at(0).point == HookPoint::Poststop);
    CHECK(document.edits.hooks.at(0).timeout_s == 5);
    CHECK(parseCdi(corpus("newest.json"), CdiFormat::Json).devices.count("8") == 1);
}

TEST_CASE("YAML and JSON of one document say the same", "[unit][cdi]") {
    const CdiDocument json = parseCdi(rightDocument().dump(), CdiFormat::Json);
    const CdiDocument yaml = parseCdi(rightDocument().dump(), CdiFormat::Yaml);  // JSON is YAML
    CHECK(json.kind == yaml.kind);
    CHECK(json.edits == yaml.edits);
    CHECK(json.devices == yaml.devices);
}

TEST_CASE("a CDI file with a wrong field is refused with the field and the reason", "[unit][cdi]") {
    REQUIRE(refusal(rightDocument()) == "accepted");
    const std::string edits = "/devices/0/containerEdits";
    struct Case {
        std::string pointer;
        const char* value;
        std::string said;
    };
    const std::vector<Case> cases{
        {"/cdiVersion", "\"2.0.0\"", "/cdiVersion is \"2.0.0\"; known here: 0.3.0"},
        {"/cdiVersion", "0.7", "/cdiVersion must be a string"},
        {"/cdiVersion", "\"0.6.0\"",
         "/devices/0/containerEdits/additionalGids this field needs cdiVersion 0.7.0"},
        {"/kind", "\"nvidia\"", "/kind is \"nvidia\"; must be vendor/class"},
        {"/kind", "\"nvidia.com/gpu/x\"", "/kind is"},
        {"/kind", "\"9v/gpu\"", "/kind is"},
        {"/kind", "\"nvidia./gpu\"", "/kind is"},
        {"/extra", "1", "/extra unknown field; known here:"},
        {"/devices", "[]", "/devices must not be empty"},
        {"/devices", "{}", "/devices must be a list"},
        {"/devices/0/name", "\"a b\"", "/devices/0/name is \"a b\""},
        {"/devices/0/name", "\"-a\"", "/devices/0/name is \"-a\""},
        {"/devices/0/name", "7", "/devices/0/name must be a string"},
        {"/devices/0/containerEdits", "{}", "/devices/0/containerEdits must say something"},
        {"/devices/0/containerEdits", "null", "/devices/0/containerEdits is missing"},
        {"/devices/0/note", "1", "/devices/0/note unknown field"},
        {"/annotations", "{\"a\":1}", "/annotations/a must be a string"},
        {edits + "/deviceNodes/0/path", "\"dev/nvidia0\"", edits + "/deviceNodes/0/path is"},
        {edits + "/deviceNodes/0/path", "\"/dev/../etc\"", edits + "/deviceNodes/0/path is"},
        {edits + "/deviceNodes/0/path", "\"/dev//x\"", edits + "/deviceNodes/0/path is"},
        {edits + "/deviceNodes/0/path", R"("/dev/a\nb")", edits + "/deviceNodes/0/path is"},
        {edits + "/deviceNodes/0/type", "\"b\"", edits + "/deviceNodes/0/type is \"b\""},
        {edits + "/deviceNodes/0/permissions", "\"rwx\"",
         edits + "/deviceNodes/0/permissions is \"rwx\""},
        {edits + "/deviceNodes/0/permissions", "\"m\"", edits + "/deviceNodes/0/permissions is"},
        {edits + "/deviceNodes/0/minor", "3", edits + "/deviceNodes/0/minor needs major"},
        {edits + "/deviceNodes/0/major", "-1", edits + "/deviceNodes/0/major must be"},
        {edits + "/deviceNodes/0/fileMode", "33206", edits + "/deviceNodes/0/fileMode must be"},
        {edits + "/deviceNodes/0/owner", "1", edits + "/deviceNodes/0/owner unknown field"},
        {edits + "/mounts/0/hostPath", "\"\"", edits + "/mounts/0/hostPath is"},
        {edits + "/mounts/0/containerPath", "\"/\"", edits + "/mounts/0/containerPath is"},
        {edits + "/mounts/0/type", "\"tmpfs\"", edits + "/mounts/0/type is \"tmpfs\""},
        {edits + "/mounts/0/options", "[\"suid\"]", edits + "/mounts/0/options/0 is \"suid\""},
        {edits + "/mounts/0/options", "[\"rshared\"]", edits + "/mounts/0/options/0 is"},
        {edits + "/hooks/0/hookName", "\"later\"", edits + "/hooks/0/hookName must be one of"},
        {edits + "/hooks/0/path", "\"true\"", edits + "/hooks/0/path is"},
        {edits + "/hooks/0/env", "[\"A\"]", edits + "/hooks/0/env/0 must be NAME=value"},
        {edits + "/hooks/0/timeout", "0", edits + "/hooks/0/timeout must be"},
        {edits + "/env", "[\"=x\"]", edits + "/env/0 must be NAME=value"},
        {edits + "/env", R"(["A=1","A=2"])", edits + " contradicts itself: the variable A"},
        {edits + "/additionalGids", "[-1]", edits + "/additionalGids/0 must be a group's number"},
        {edits + "/netDevices", "[]", edits + "/netDevices is not supported"},
        {edits + "/intelRdt", "{}", edits + "/intelRdt is not supported"},
    };
    for (const Case& each : cases) {
        INFO(each.pointer << " = " << each.value);
        CHECK(refusal(each.pointer, each.value).starts_with(each.said));
    }
}

TEST_CASE("a CDI file may use only what its version knows", "[unit][cdi]") {
    const auto at = [](const char* version, const char* device, const char* more) {
        return refusal(Json::parse(std::string(R"({"cdiVersion":")") + version +
                                   R"(","kind":"v.com/c","devices":[{"name":")" + device +
                                   R"(","containerEdits":)" + more + "}]}"));
    };
    const char* plain = R"({"env":["A=1"]})";
    const char* host_path = R"({"deviceNodes":[{"path":"/dev/a","hostPath":"/dev/b"}]})";
    const char* type = R"({"mounts":[{"hostPath":"/a","containerPath":"/b","type":"bind"}]})";
    CHECK(at("0.3.0", "a", plain) == "accepted");
    CHECK(at("0.2.0", "a", plain).starts_with("/cdiVersion is \"0.2.0\""));
    CHECK(at("0.4.0", "0", plain).find("needs cdiVersion 0.5.0") != std::string::npos);
    CHECK(at("0.5.0", "0", plain) == "accepted");
    CHECK(at("0.4.0", "a", host_path).find("needs cdiVersion 0.5.0") != std::string::npos);
    CHECK(at("0.3.0", "a", type).find("needs cdiVersion 0.4.0") != std::string::npos);
    CHECK(at("0.4.0", "a", type) == "accepted");
    Json dotted = rightDocument();
    dotted["kind"] = "v.com/gpu.x";
    CHECK(refusal(dotted) == "accepted");
    dotted["cdiVersion"] = "0.5.0";
    CHECK(refusal(dotted).starts_with("/kind a \".\" in the class needs cdiVersion 0.6.0"));
}

TEST_CASE("a text that is no CDI document is refused at its place", "[unit][cdi]") {
    const auto refused = [](const std::string& text, CdiFormat format) {
        try {
            parseCdi(text, format);
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string("accepted");
    };
    CHECK(refused("", CdiFormat::Json) == "not valid JSON at byte 1");
    CHECK(refused("[]", CdiFormat::Json) == "the document must be an object");
    CHECK(refused("{\"kind\":1,\"kind\":2}", CdiFormat::Json).find("is given twice") !=
          std::string::npos);
    CHECK(refused("a: 1\na: 2\n", CdiFormat::Yaml) == "line 2: the key \"a\" is given twice");
    CHECK(refused("a\xff: 1\n", CdiFormat::Yaml) == "the document is not UTF-8");
    CHECK(refused(std::string(2U << 20U, ' '), CdiFormat::Json).find("larger than") !=
          std::string::npos);
    CHECK(refused(std::string(64, '['), CdiFormat::Json).find("nested too deeply") !=
          std::string::npos);
    Json twice = rightDocument();
    twice["devices"].push_back(twice["devices"][0]);
    CHECK(refusal(twice) == "/devices/1/name \"one\" is given twice in this file");
}

TEST_CASE("a damaged CDI file is read or refused with a message, without a crash", "[unit][cdi]") {
    std::mt19937 random(20261125);
    const auto below = [&](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    const std::string yaml = corpus("two_gpus.yaml");
    const std::string json = corpus("mig.json");
    const std::string bytes = "{}[]:,-&*!|>'\"#%@\n\t 0A\0\xff/"s;
    std::size_t refused = 0;
    for (int round = 0; round < 4000; ++round) {
        const bool as_yaml = round % 2 == 0;
        std::string text = as_yaml ? yaml : json;
        for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
            const std::size_t at = below(text.size());
            switch (below(3)) {
                case 0:
                    text[at] = bytes[below(bytes.size())];
                    break;
                case 1:
                    text.erase(at, 1 + below(30));
                    break;
                default:
                    text.insert(at, text.substr(below(text.size()), 1 + below(60)));
            }
        }
        try {
            parseCdi(text, as_yaml ? CdiFormat::Yaml : CdiFormat::Json);
        } catch (const Error& e) {
            ++refused;
            if (e.code() == ErrorCode::InvalidArgument && *e.what() != '\0') continue;
            FAIL(e.what());
        }
    }
    CHECK(refused > 1000);
}
