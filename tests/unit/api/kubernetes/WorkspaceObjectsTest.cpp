#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "api/auth/WorkspaceToken.h"
#include "api/kubernetes/WorkspaceObjects.h"
#include "tests/unit/api/kubernetes/Cluster.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;
using hearth::kubernetes::WorkspaceObjects;
using hearth::kubernetes::test::kSecrets;
using hearth::kubernetes::test::kWorkspaces;

namespace {

Json wanting(Json spec, const std::string& name = "one") {
    return {{"apiVersion", kPoolApiVersion},
            {"kind", "Workspace"},
            {"metadata", {{"name", name}, {"namespace", "x"}, {"generation", 1}}},
            {"spec", std::move(spec)}};
}

Principal acme() {
    return {.tenant = "acme", .token_id = {}};
}

struct Claims : kubernetes::test::Cluster {
    Claims() {
        house->declare("p", smallSpec(2));
        REQUIRE(house->filled("p", 2));
    }
    /// Declares a pool for one sandbox, which is ready. Further claims wait.
    void declareForOne(const std::string& pool, std::chrono::seconds max_wait) {
        PoolSpec spec = smallSpec(1);
        spec.max_members = 1;
        spec.max_wait = max_wait;
        house->declare(pool, spec);
        REQUIRE(house->filled(pool, 1));
    }
    std::unique_ptr<WorkspaceObjects> follow() {
        auto made = std::make_unique<WorkspaceObjects>(config(), house->workspaces, house->secret,
                                                       "http://there", ground.manual, house->log);
        made->begin();
        return made;
    }
    Json status(const std::string& name = "one") const {
        return Cluster::status(kWorkspaces, name);
    }
    bool reaches(const std::string& phase, const std::string& name = "one") {
        return settled([&] { return status(name).value("phase", "") == phase; });
    }
    std::string condition(const std::string& type) const {
        return Cluster::condition(kWorkspaces, "one", type);
    }
    /// Returns "TYPE REASON: MESSAGE" of each event about the object, in order.
    std::vector<std::string> told(const std::string& name = "one") const {
        std::vector<std::string> events;
        for (const auto& request : server.seen("create")) {
            if (request.path.find("/events") == std::string::npos) continue;
            const Json event = Json::parse(request.body);
            if (event["involvedObject"]["name"] != name) continue;
            CHECK(event["involvedObject"]["kind"] == "Workspace");
            events.push_back(event["type"].get<std::string>() + " " +
                             event["reason"].get<std::string>() + ": " +
                             event["message"].get<std::string>());
        }
        return events;
    }
    bool isOpen(const std::string& id) {
        try {
            return controller::isOpen(house->workspaces.get(acme(), id).phase);
        } catch (const Error&) {
            return false;
        }
    }
};

}  // namespace

TEST_CASE("an object gets a workspace, with an address and a token for it alone",
          "[unit][resources]") {
    Claims at;
    const auto objects = at.follow();
    const Json object = at.server.put(
        kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}, {"env", {{"A", "1"}}}}));
    REQUIRE(at.reaches("Active"));
    const Json status = at.status();
    CHECK(at.condition("Ready") == "True");
    CHECK(status.contains("source"));
    const std::string id = status["workspace"];
    CHECK(at.isOpen(id));
    const Json secret = *at.server.get(kSecrets, "x/" + status["secret"].get<std::string>());
    CHECK(secret["stringData"]["url"] == "http://there");
    CHECK(secret["metadata"]["ownerReferences"][0]["uid"] == object["metadata"]["uid"]);
    const auto grant = auth::readWorkspaceToken(at.house->secret,
                                                secret["stringData"]["token"].get<std::string>());
    REQUIRE(grant);
    CHECK(grant->tenant == "acme");
    CHECK(grant->workspace == id);

    at.server.remove(kWorkspaces, "x/one");
    CHECK(at.settled([&] { return !at.isOpen(id); }));
}

TEST_CASE("an invalid object reports its error, and gets a workspace once it is mended",
          "[unit][resources]") {
    Claims at;
    const auto objects = at.follow();
    for (const Json& wrong :
         {Json{{"pol", "p"}}, Json{{"tenant", "../x"}}, Json{{"secrets", {{"A", "b"}}}}}) {
        Json object = wanting(wrong);
        object["metadata"]["generation"] = 1;
        at.server.put(kWorkspaces, object);
        CHECK(at.settled([&] { return at.condition("Stalled") == "True"; }));
        at.server.remove(kWorkspaces, "x/one");
    }
    at.server.put(kWorkspaces, wanting({{"pool", "nowhere"}}));
    CHECK(at.reaches("Pending"));
    Json mended = wanting({{"pool", "p"}});
    mended["metadata"]["generation"] = 2;
    at.server.put(kWorkspaces, mended);
    CHECK(at.reaches("Active"));
}

TEST_CASE("objects that find no sandbox wait for one", "[unit][resources]") {
    Claims at;
    at.declareForOne("small", 1s);
    const auto objects = at.follow();
    at.server.put(kWorkspaces, wanting({{"pool", "small"}, {"tenant", "acme"}}));
    REQUIRE(at.reaches("Active"));
    at.server.put(kWorkspaces, wanting({{"pool", "small"}, {"tenant", "acme"}}, "two"));
    CHECK(at.reaches("Pending", "two"));
    at.server.remove(kWorkspaces, "x/one");
    CHECK(at.reaches("Active", "two"));
}

TEST_CASE("a tenant's objects have at most eight claims under way, and others go on",
          "[unit][resources]") {
    Claims at;
    at.declareForOne("full", 600s);
    const auto objects = at.follow();
    const auto claims = [&](const std::string& tenant, const std::string& pool, std::size_t count,
                            const std::string& name) {
        for (std::size_t i = 0; i < count; ++i) {
            at.server.put(kWorkspaces,
                          wanting({{"pool", pool}, {"tenant", tenant}}, name + std::to_string(i)));
        }
    };
    const auto waiting = [&] { return at.house->pools.get(acme(), "full").status.waiting; };
    claims("first", "full", 1, "first");
    REQUIRE(at.reaches("Active", "first0"));

    claims("acme", "full", 12, "acme");
    REQUIRE(at.settled([&] { return waiting() == 8; }));
    claims("acme", "p", 1, "spare");  // without the limit, this claim would succeed at once
    claims("other", "p", 1, "other");
    CHECK(at.reaches("Active", "other0"));
    int looks = 0;
    at.settled([&] { return ++looks > 50; });
    CHECK(at.status("spare0").empty());
    CHECK(waiting() == 8);

    SECTION("and all together sixty-four") {
        for (int i = 0; i < 8; ++i)
            claims("t" + std::to_string(i), "full", 9, "t" + std::to_string(i) + "-");
        CHECK(at.settled([&] { return waiting() == 64; }));
        looks = 0;
        at.settled([&] { return ++looks > 50; });
        CHECK(waiting() == 64);
    }
}

TEST_CASE("an object reports the end of its workspace and claims no other", "[unit][resources]") {
    Claims at;
    const auto objects = at.follow();
    at.server.put(kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}}));
    REQUIRE(at.reaches("Active"));
    const std::string id = at.status()["workspace"];
    at.house->workspaces.close(acme(), id);
    CHECK(at.reaches("Gone"));
    CHECK(at.condition("Ready") == "False");
    int looks = 0;
    at.settled([&] { return ++looks > 50; });
    CHECK(at.status()["workspace"] == id);
    CHECK(at.house->warm.counts("p").claimed == 0);
}

TEST_CASE("after a restart an object keeps its workspace; one whose object went meanwhile ends",
          "[unit][resources]") {
    Claims at;
    {
        const auto objects = at.follow();
        for (const char* name : {"one", "gone"}) {
            at.server.put(kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}}, name));
            REQUIRE(at.reaches("Active", name));
        }
    }
    const std::string kept = at.status()["workspace"];
    const std::string gone = at.status("gone")["workspace"];
    at.server.remove(kWorkspaces, "x/gone");
    at.restart();
    at.house->recover();
    const auto objects = at.follow();
    CHECK(at.settled([&] { return !at.isOpen(gone); }));
    CHECK(at.isOpen(kept));
    CHECK(at.status()["workspace"] == kept);
    CHECK(at.status()["phase"] == "Active");
}

TEST_CASE("an object whose status was lost gets the same workspace again", "[unit][resources]") {
    Claims at;
    {
        const auto objects = at.follow();
        at.server.put(kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}}));
        REQUIRE(at.reaches("Active"));
    }
    const std::string id = at.status()["workspace"];
    Json object = *at.server.get(kWorkspaces, "x/one");
    object.erase("status");
    at.server.put(kWorkspaces, object);
    const auto objects = at.follow();
    REQUIRE(at.reaches("Active"));
    CHECK(at.status()["workspace"] == id);
}

TEST_CASE("an object ignores a status that names a workspace of another claim",
          "[unit][resources]") {
    Claims at;
    WorkspaceRequest request;
    request.pool = "p";
    const std::string other = at.house->open(acme(), request).id;
    Json object = wanting({{"pool", "p"}});
    object["status"] = {{"phase", "Active"}, {"workspace", other}, {"tenant", "acme"}};
    at.server.put(kWorkspaces, object);
    const auto objects = at.follow();
    REQUIRE(at.settled([&] { return at.status().value("workspace", other) != other; }));
    const std::string own = at.status()["workspace"];
    at.server.remove(kWorkspaces, "x/one");
    CHECK(at.settled([&] { return !at.isOpen(own); }));
    CHECK(at.isOpen(other));
}

TEST_CASE("events report a claim, the reason of its wait and its end, once each",
          "[unit][resources]") {
    Claims at;
    auto objects = at.follow();
    at.server.put(kWorkspaces, wanting({{"pool", "small"}, {"tenant", "acme"}}));
    REQUIRE(at.reaches("Pending"));
    int looks = 0;
    at.settled([&] { return ++looks > 200; });  // the claim is tried again all the time
    REQUIRE(at.told().size() == 1);
    CHECK_THAT(at.told()[0], Catch::StartsWith("Warning NoPool: ") && Catch::Contains("small"));

    objects.reset();  // else it may get the sandbox first
    at.declareForOne("small", 1s);
    WorkspaceRequest request;
    request.pool = "small";
    const std::string other = at.house->open(acme(), request).id;
    objects = at.follow();
    REQUIRE(at.settled([&] { return at.told().size() == 2; }));
    CHECK_THAT(at.told()[1], Catch::StartsWith("Warning PoolExhausted: "));
    at.settled([&] { return ++looks > 400; });
    CHECK(at.told().size() == 2);

    at.house->workspaces.close(acme(), other);
    REQUIRE(at.reaches("Active"));
    REQUIRE(at.settled([&] { return at.told().size() == 3; }));
    CHECK_THAT(at.told()[2], Catch::StartsWith("Normal Claimed: "));
    at.house->workspaces.close(acme(), at.status()["workspace"]);
    REQUIRE(at.reaches("Gone"));
    REQUIRE(at.settled([&] { return at.told().size() == 4; }));
    CHECK_THAT(at.told()[3], Catch::StartsWith("Normal Ended: ") && Catch::Contains("has ended"));
}

TEST_CASE("an object tells the reason of its workspace's end before the disk has it",
          "[unit][resources]") {
    Claims at;
    const auto objects = at.follow();
    at.server.put(kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}}));
    REQUIRE(at.reaches("Active"));
    std::promise<void> disk;
    at.house->journal.write([&](Database&) { disk.get_future().wait(); });
    at.house->workspaces.close(acme(), at.status()["workspace"]);
    const bool gone = at.reaches("Gone");
    const bool told = at.settled([&] { return at.told().size() == 2; });
    disk.set_value();
    REQUIRE(gone);
    REQUIRE(told);
    CHECK_THAT(at.told()[1], Catch::StartsWith("Normal Ended: ") && Catch::Contains("has ended"));
}

TEST_CASE("a wrong spec makes one event, and a restarted server repeats none",
          "[unit][resources]") {
    Claims at;
    {
        const auto objects = at.follow();
        at.server.put(kWorkspaces, wanting({{"pol", "p"}}));
        at.server.put(kWorkspaces, wanting({{"pool", "p"}, {"tenant", "acme"}}, "two"));
        REQUIRE(at.settled([&] { return !at.told().empty() && !at.told("two").empty(); }));
        CHECK_THAT(at.told()[0], Catch::StartsWith("Warning InvalidSpec: "));
    }
    const auto objects = at.follow();
    int looks = 0;
    at.settled([&] { return ++looks > 50; });
    CHECK(at.told().size() == 1);
    CHECK(at.told("two").size() == 1);
}
