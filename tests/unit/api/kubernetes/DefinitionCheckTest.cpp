#include <fcntl.h>

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "api/kubernetes/DefinitionCheck.h"
#include "api/kubernetes/Definitions.h"
#include "base/Clock.h"
#include "base/Fd.h"
#include "metrics/Log.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::kubernetes;

namespace {

constexpr const char* kServed = "/apis/hearth.dev/v1alpha1";
constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

Json& fieldsOf(Json& definition) {
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
}

/// The answers of an API server with these definitions; `readable`: it also returns them.
struct Answers {
    Json pools = sandboxPoolDefinition();
    Json workspaces = workspaceDefinition();
    bool readable = false;
    bool away = false;
    int reads = 0;

    void mark(const std::string& mark) {
        Json categories = Json::array({"hearth"});
        if (!mark.empty()) categories.push_back(mark);
        pools["spec"]["names"]["categories"] = categories;
    }
    ReadPath read() {
        return [this](const std::string& path) -> std::optional<Json> {
            ++reads;
            if (away) return std::nullopt;
            Json resources = Json::array({{{"name", "sandboxpools/status"}}});
            for (const Json* each : {&pools, &workspaces}) {
                const Json& names = (*each)["spec"]["names"];
                if (readable &&
                    path == kDefinitions + (*each)["metadata"]["name"].get<std::string>())
                    return *each;
                resources.push_back(
                    {{"name", names["plural"]}, {"categories", names["categories"]}});
            }
            if (path == kServed) return Json{{"resources", resources}};
            return std::nullopt;
        };
    }
    std::string trouble(bool inside = false) { return checkDefinitions(read(), inside).trouble; }
};

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a definition's mark changes with its fields, not with its descriptions",
          "[unit][resources]") {
    const Json ours = sandboxPoolDefinition();
    CHECK(ours["spec"]["names"]["categories"][1] == definitionMark(ours));
    CHECK(definitionMark(ours) != definitionMark(workspaceDefinition()));
    Json reworded = ours;
    fieldsOf(reworded)["spec"]["description"] = "other words";
    CHECK(definitionMark(reworded) == definitionMark(ours));
    Json older = ours;
    fieldsOf(older)["spec"]["properties"].erase("onEmpty");
    CHECK(definitionMark(older) != definitionMark(ours));
    // The mark is a category, and a category is a DNS label.
    CHECK(definitionMark(ours).size() <= 63);
    CHECK(definitionMark(ours).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
          std::string::npos);
}

TEST_CASE("definitions of this program or of a newer one are right", "[unit][resources]") {
    Answers at;
    CHECK(checkDefinitions(at.read(), false).known);
    CHECK(at.trouble().empty());
    CHECK(at.trouble(true).empty());
    at.mark("hearth-definition-99-0-0-0123456789ab");
    CHECK(at.trouble().empty());
}

TEST_CASE("older and foreign definitions are found by the list of resources alone",
          "[unit][resources]") {
    Answers at;
    at.mark("");
    CHECK(holds(at.trouble(), "sandboxpools.hearth.dev is older than Hearth"));
    at.mark("hearth-definition-0-0-1-0123456789ab");
    CHECK(holds(at.trouble(), "sandboxpools.hearth.dev is of Hearth 0.0.1"));
    at.mark(definitionMark(workspaceDefinition()));
    CHECK(holds(at.trouble(), "sandboxpools.hearth.dev is not the one of this Hearth"));
    CHECK(holds(at.trouble(), "silently drops fields"));
    CHECK_FALSE(holds(at.trouble(), "workspaces.hearth.dev"));
}

TEST_CASE("a readable definition is reported with the fields and enum values that it lacks",
          "[unit][resources]") {
    Answers at;
    at.readable = true;
    Json& spec = fieldsOf(at.pools)["spec"]["properties"];
    spec["lifecycle"]["properties"].erase("onIdle");
    Json& words = spec["onEmpty"]["properties"]["action"]["enum"];
    words.erase(words.begin());
    at.mark("");
    CHECK(holds(at.trouble(), "and lacks spec.onEmpty.action=Queue, spec.lifecycle.onIdle"));
    at.mark(definitionMark(sandboxPoolDefinition()));
    CHECK(at.trouble().empty());  // a kept mark is believed without a look at the fields
    CHECK(holds(at.trouble(true), "was changed by hand and lacks spec.onEmpty.action"));
    fieldsOf(at.pools)["spec"]["properties"] = Json::object();
    CHECK(holds(at.trouble(true), " more: the API server silently drops fields"));
    at.pools["spec"]["versions"][0]["name"] = "v1alpha0";
    CHECK(holds(at.trouble(true), "lacks version v1alpha1"));
}

TEST_CASE("no field is missing below one that preserves unknown fields", "[unit][resources]") {
    Json theirs = sandboxPoolDefinition();
    Json& spec = fieldsOf(theirs)["spec"];
    spec.erase("properties");
    spec["x-kubernetes-preserve-unknown-fields"] = true;
    CHECK(fieldsLackingIn(theirs, sandboxPoolDefinition()).empty());
}

TEST_CASE("a server tells of older definitions once, and again when they are right",
          "[unit][resources]") {
    test::TempDir dir;
    ManualClock clock;
    const Fd file(::open(dir.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    metrics::Log log(file.get());
    const auto logged = [&](const std::string& event) {
        return holds(test::readText(dir.file("log")), "event=" + event);
    };
    DefinitionWatch watch(clock, log);
    Answers at;
    at.mark("");
    watch.look(at.read());
    CHECK_FALSE(watch.trouble().empty());
    CHECK(logged("kubernetes.definitions_outdated"));
    const int reads = at.reads;
    watch.look(at.read());
    CHECK(at.reads == reads);  // a second look so soon reads nothing
    at.away = true;
    clock.advance(DefinitionWatch::kLook);
    watch.look(at.read());
    CHECK_FALSE(watch.trouble().empty());  // without an answer the trouble stays
    at.away = false;
    at.mark(definitionMark(sandboxPoolDefinition()));
    clock.advance(DefinitionWatch::kLook);
    watch.look(at.read());
    CHECK(watch.trouble().empty());
    CHECK(logged("kubernetes.definitions_current"));
}
