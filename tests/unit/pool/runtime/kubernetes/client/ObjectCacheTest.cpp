#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pool/runtime/kubernetes/client/ObjectCache.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;

namespace {

Json pod(const std::string& name, const std::string& uid, const std::string& version) {
    return {{"metadata",
             {{"namespace", "x"}, {"name", name}, {"uid", uid}, {"resourceVersion", version}}}};
}

/// The reports to subscribers, as short texts: "+x/a u1", "~x/a u1", "-x/a u1", "-x/a u1 late".
class Told {
public:
    explicit Told(ObjectCache& cache)
        : subscription_(cache.subscribe([this](const ObjectChange& change) { add(change); })) {}

    std::vector<std::string> take() { return std::exchange(lines_, {}); }

private:
    void add(const ObjectChange& change) {
        const Json& object = change.now ? *change.now : *change.before;
        const char* const sign = !change.before ? "+" : change.now ? "~" : "-";
        lines_.push_back(sign + objectKey(object) + " " + metadataText(object, "uid") +
                         (change.late ? " late" : ""));
    }

    std::vector<std::string> lines_;
    std::shared_ptr<void> subscription_;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a list adds, updates, and deletes what is not in it", "[unit][kubernetes]") {
    ObjectCache cache;
    Told told(cache);
    CHECK_FALSE(cache.hasSynced());
    cache.replace({pod("a", "u1", "1"), pod("b", "u2", "2"), pod("c", "u3", "3")});
    CHECK(cache.hasSynced());
    CHECK(told.take() == Lines{"+x/a u1", "+x/b u2", "+x/c u3"});
    cache.replace({pod("b", "u2", "2"), pod("c", "u3", "9"), pod("d", "u4", "8")});
    CHECK(told.take() == Lines{"-x/a u1 late", "~x/c u3", "+x/d u4"});
    CHECK(cache.size() == 3);
    CHECK(cache.get("x/a") == nullptr);
    CHECK(metadataText(*cache.get("x/c"), "resourceVersion") == "9");
    cache.replace({});
    CHECK(told.take().size() == 3);
    CHECK(cache.size() == 0);
}

TEST_CASE("an object of the same name with another uid is a new one", "[unit][kubernetes]") {
    ObjectCache cache;
    Told told(cache);
    cache.replace({pod("a", "u1", "1")});
    cache.replace({pod("a", "u2", "5")});
    CHECK(told.take() == Lines{"+x/a u1", "-x/a u1 late", "+x/a u2"});
    cache.put(pod("a", "u3", "6"));
    CHECK(told.take() == Lines{"-x/a u2 late", "+x/a u3"});
}

TEST_CASE("events change the cache, and repeated ones call no subscriber", "[unit][kubernetes]") {
    ObjectCache cache;
    Told told(cache);
    cache.put(pod("a", "u1", "1"));
    cache.put(pod("a", "u1", "1"));
    cache.put(pod("a", "u1", "2"));
    cache.remove(pod("a", "u1", "3"));
    cache.remove(pod("a", "u1", "3"));
    CHECK(told.take() == Lines{"+x/a u1", "~x/a u1", "-x/a u1"});
}

TEST_CASE("a deletion shows the last state", "[unit][kubernetes]") {
    ObjectCache cache;
    cache.put(pod("a", "u1", "1"));
    std::string last;
    const auto subscription = cache.subscribe([&](const ObjectChange& change) {
        last = metadataText(*change.before, "resourceVersion");
    });
    cache.remove(pod("a", "u1", "3"));
    CHECK(last == "3");
}

TEST_CASE("managed fields are not kept", "[unit][kubernetes]") {
    ObjectCache cache;
    Json object = pod("a", "u1", "1");
    object["metadata"]["managedFields"] = Json::array({{{"manager", "kubectl"}}});
    cache.put(object);
    CHECK_FALSE(cache.get("x/a")->at("metadata").contains("managedFields"));
    CHECK(cache.get("x/a")->at("metadata").contains("uid"));
}

TEST_CASE("a reader's object stays as it was", "[unit][kubernetes]") {
    ObjectCache cache;
    cache.put(pod("a", "u1", "1"));
    const KubeObject held = cache.get("x/a");
    cache.put(pod("a", "u1", "2"));
    CHECK(metadataText(*held, "resourceVersion") == "1");
}

TEST_CASE("subscribers are called in order and may read the cache", "[unit][kubernetes]") {
    ObjectCache cache;
    std::vector<std::string> order;
    const auto first = cache.subscribe([&](const ObjectChange&) {
        order.push_back("first sees " + std::to_string(cache.size()));
    });
    auto second = cache.subscribe([&](const ObjectChange&) { order.emplace_back("second"); });
    cache.put(pod("a", "u1", "1"));
    second.reset();
    cache.put(pod("b", "u2", "2"));
    CHECK(order == Lines{"first sees 1", "second", "first sees 2"});
}

TEST_CASE("indexes follow owner, node and label", "[unit][kubernetes]") {
    ObjectCache cache(
        {{"owner", ownerUids}, {"node", nodeName}, {"pool", labelValue("hearth/pool")}});
    Json object = pod("a", "u1", "1");
    object["metadata"]["ownerReferences"] = Json::array({{{"uid", "o1"}}, {{"uid", "o2"}}});
    object["metadata"]["labels"]["hearth/pool"] = "python";
    object["spec"]["nodeName"] = "n1";
    cache.put(object);
    cache.put(pod("b", "u2", "1"));
    CHECK(cache.find("owner", "o2").size() == 1);
    CHECK(cache.find("node", "n1").size() == 1);
    CHECK(cache.find("pool", "python").size() == 1);
    object["metadata"]["resourceVersion"] = "2";
    object["metadata"].erase("ownerReferences");
    object["spec"]["nodeName"] = "n2";
    cache.put(object);
    CHECK(cache.find("owner", "o2").empty());
    CHECK(cache.find("node", "n1").empty());
    CHECK(cache.find("node", "n2").front() == cache.get("x/a"));
    cache.remove(object);
    CHECK(cache.find("pool", "python").empty());
    CHECK_THROWS_AS(cache.find("colour", "red"), std::out_of_range);
}
