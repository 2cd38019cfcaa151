#include <catch2/catch.hpp>
#include <future>

#include "tests/unit/api/mcp/Scene.h"

namespace hearth::mcp {
namespace {

const controller::Principal kOwner{"default", controller::Role::User, ""};

std::string workspaceOf(Scene& scene, const controller::Principal& who = kOwner) {
    return scene.house.open(who, {}).id;
}

std::string fileUri(const std::string& workspace, const std::string& path) {
    return "workspace://" + workspace + "/files/" + path;
}

/// Writes a file like a call of the API does.
void put(Scene& scene, const std::string& workspace, const std::string& path, std::string bytes) {
    scene.house.workspaces.writeFile(kOwner, workspace, path, std::nullopt,
                                     [&bytes](char* to, std::size_t room) {
                                         const std::size_t size = bytes.copy(to, room);
                                         bytes.erase(0, size);
                                         return size;
                                     });
}

Json subscribe(Scene& scene, const std::string& uri) {
    return scene.postJson(message("resources/subscribe", 1, {{"uri", uri}}));
}

/// Returns the notifications that a stream of subscriptions/listen acknowledges for these URIs.
Json honoured(Scene& scene, const std::vector<std::string>& uris) {
    const Json wanted = {{"notifications", {{"resourceSubscriptions", uris}}}};
    const api::Response response = scene.post(modern(scene, "subscriptions/listen", 1, wanted));
    std::string sent;
    if (const auto* text = std::get_if<std::string>(&response.body)) {
        sent = *text;
    } else {
        sent = started(response)->until("acknowledged");
    }
    const std::size_t begin = sent.find('{');
    return parseJson(sent.substr(begin, sent.find('\n', begin) - begin))
        .at("params")
        .at("notifications");
}

}  // namespace

TEST_CASE("a slow read of the history does not delay the end of a session", "[unit][mcp]") {
    std::promise<void> over;
    std::promise<void> found;
    Scene scene;
    scene.open();
    const std::shared_ptr<FakeStream> stream = started(scene.send("GET", ""));
    REQUIRE(subscribe(scene, "pool://python").contains("result"));
    scene.house.executions.at_find = [&, until = over.get_future().share()] {
        found.set_value();
        until.wait();
    };
    scene.house.events.happen(
        {.type = "execution.finished", .resource = test::kExecution, .tenant = "default"});
    REQUIRE(found.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    // The front's thread does the same when the client disconnects.
    const auto ended =
        std::async(std::launch::async, [&] { return scene.send("DELETE", "").status; });
    const bool at_once = ended.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    over.set_value();
    CHECK(at_once);
}

TEST_CASE("a one shot sends no notification of a changed resource list", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const std::shared_ptr<FakeStream> stream = started(scene.send("GET", ""));
    REQUIRE(subscribe(scene, "pool://python").contains("result"));
    for (const char* type : {"workspace.created", "workspace.reclaimed"}) {
        scene.house.events.happen(
            {.type = type, .resource = test::kWorkspace, .tenant = "default", .one_shot = true});
    }
    scene.house.events.happen({.type = "pool.degraded", .resource = "python", .pool = "python"});
    const std::string told = stream->until("resources/updated");
    CHECK(told.find("pool://python") != std::string::npos);
    CHECK(told.find("list_changed") == std::string::npos);

    // A workspace that lists show is reported. This proves that the check above can fail.
    Scene other;
    other.open();
    const std::shared_ptr<FakeStream> second = started(other.send("GET", ""));
    other.house.events.happen(
        {.type = "workspace.created", .resource = test::kWorkspace, .tenant = "default"});
    CHECK(second->until("list_changed").find("resources/list_changed") != std::string::npos);
}

TEST_CASE("a session with warnings enabled is notified before a workspace ends", "[unit][mcp]") {
    const auto expiring = [](Scene& scene, const std::string& tenant) {
        scene.house.events.happen({.type = "workspace.expiring",
                                   .resource = test::kWorkspace,
                                   .tenant = tenant,
                                   .reason = "idle",
                                   .message = "the workspace ends in 30 s"});
    };
    Scene scene;
    scene.open();
    const std::shared_ptr<FakeStream> stream = started(scene.send("GET", ""));
    REQUIRE(
        scene.postJson(message("logging/setLevel", 1, {{"level", "warning"}})).contains("result"));
    expiring(scene, "someone else");
    expiring(scene, "default");
    const std::string told = stream->until("notifications/message");
    CHECK(told.find(std::string(test::kWorkspace) + ": the workspace ends in 30 s") !=
          std::string::npos);
    CHECK(told.find("notifications/message") == told.rfind("notifications/message"));

    // A session that asked for graver messages only, or for none, gets only its subscription's.
    Scene other;
    other.open();
    const std::shared_ptr<FakeStream> second = started(other.send("GET", ""));
    REQUIRE(
        other.postJson(message("logging/setLevel", 1, {{"level", "error"}})).contains("result"));
    const std::string workspace = workspaceOf(other);
    REQUIRE(subscribe(other, "workspace://" + workspace).contains("result"));
    other.house.events.happen(
        {.type = "workspace.expiring", .resource = workspace, .tenant = "default"});
    const std::string updated = second->until("resources/updated");
    CHECK(updated.find(workspace) != std::string::npos);
    CHECK(updated.find("notifications/message") == std::string::npos);
}

TEST_CASE("an endpoint without resources sends no change and refuses subscriptions",
          "[unit][mcp]") {
    Scene scene;
    scene.surface.mount("/earlier", {.server_info = {{"name", "earlier"}, {"version", "1"}},
                                     .instructions = "",
                                     .tools = Toolbox(scene.house.services, {})});
    scene.open();
    const std::string native = scene.headers.back().second;
    scene.endpoint = "/earlier/mcp";
    const Json hello = scene.postJson(message("initialize", 0, {{"protocolVersion", "2025-11-25"}}))
                           .at("result")
                           .at("capabilities");
    CHECK(hello.at("tools") == Json{{"listChanged", false}});
    CHECK_FALSE(hello.contains("resources"));
    scene.open();
    CHECK(errorCode(subscribe(scene, "pool://python")) == -32601);
    const std::shared_ptr<FakeStream> earlier = started(scene.send("GET", ""));
    scene.endpoint = "/mcp";
    const std::string session = scene.headers.back().second;
    scene.set("Mcp-Session-Id", native);
    const std::shared_ptr<FakeStream> stream = started(scene.send("GET", ""));
    scene.house.events.happen(
        {.type = "workspace.created", .resource = test::kWorkspace, .tenant = "default"});
    scene.surface.notifier().promptsChanged();
    scene.surface.notifier().toolsChanged();
    stream->until("tools/list_changed");
    scene.endpoint = "/earlier/mcp";
    scene.set("Mcp-Session-Id", session);
    CHECK(scene.send("DELETE", "").status == 204);
    CHECK(earlier->until("").find("list_changed") == std::string::npos);
}

TEST_CASE("a file subscription reports writes of the API to that file only", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const std::string id = workspaceOf(scene);
    put(scene, id, "a.txt", "one");
    const std::shared_ptr<FakeStream> stream = started(scene.send("GET", ""));
    REQUIRE(subscribe(scene, fileUri(id, "a.txt")) == resultMessage(1, Json::object()));
    REQUIRE(subscribe(scene, "pool://python").contains("result"));
    put(scene, id, "other.txt", "nobody asked");
    put(scene, id, "a.txt", "two");
    CHECK(stream->until(fileUri(id, "a.txt")).find("resources/updated") != std::string::npos);
    CHECK(stream->until(fileUri(id, "a.txt")).find("other.txt") == std::string::npos);
}

TEST_CASE("a file subscription reports writes of code when its execution ends", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    const std::string id = workspaceOf(scene);
    const std::string uri = fileUri(id, "made.csv");
    // The file does not exist yet. The subscription reports it when it appears.
    const Json wanted = {{"notifications", {{"resourceSubscriptions", {uri}}}}};
    const std::shared_ptr<FakeStream> stream =
        started(scene.post(modern(scene, "subscriptions/listen", "l", wanted)));
    CHECK(stream->until("acknowledged").find(uri) != std::string::npos);
    CHECK(stream->until("acknowledged").find("resources/updated") == std::string::npos);
    const auto run = scene.house.executions.start(kOwner, id, {});
    scene.house.workspaces.overwrite(id, "made.csv", "1,2");
    scene.house.events.happen(
        {.type = "execution.finished", .resource = run->id(), .tenant = "default"});
    const std::string told = stream->until("resources/updated");
    CHECK(told.find("\"uri\":\"" + uri + "\"") != std::string::npos);
    CHECK(told.find(R"("io.modelcontextprotocol/subscriptionId":"l")") != std::string::npos);
}

TEST_CASE("listen acknowledges only subscriptions that it will serve", "[unit][mcp]") {
    Scene scene;
    const std::string mine = workspaceOf(scene);
    const std::string theirs = workspaceOf(scene, {"other", controller::Role::User, ""});
    const std::vector<std::string> told = {"pool://python", "workspace://" + mine,
                                           "workspace://" + mine + "/files/new.txt",
                                           "workspace://" + mine + "/logs"};
    std::vector<std::string> asked = told;
    for (const std::string& never :
         {std::string("pool://none"), std::string("nonsense"), "workspace://" + theirs + "/logs",
          fileUri(theirs, "a.txt"), "workspace://" + mine + "/secrets", fileUri(mine, "%zz")}) {
        asked.push_back(never);
    }
    CHECK(honoured(scene, asked).at("resourceSubscriptions") == Json(told));
    CHECK_FALSE(honoured(scene, {"nonsense"}).contains("resourceSubscriptions"));

    Scene session;
    session.open();
    CHECK(errorCode(subscribe(session, "nonsense")) == -32002);
    const std::string foreign = workspaceOf(session, {"other", controller::Role::User, ""});
    CHECK(errorCode(subscribe(session, fileUri(foreign, "a.txt"))) == -32002);
}

TEST_CASE("a workspace limits its watched files, and the end of a watch frees a place",
          "[unit][mcp]") {
    FakeServices house;
    FileWatch watch(house.services, [](const std::string&, const std::string&) {});
    const std::string id = house.open(kOwner, {}).id;
    std::vector<std::shared_ptr<void>> kept;
    for (std::size_t i = 0; i < FileWatch::kMostOfWorkspace; ++i) {
        kept.push_back(watch.watch(kOwner, fileUri(id, std::to_string(i))));
        REQUIRE(kept.back());
    }
    CHECK_FALSE(watch.watch(kOwner, fileUri(id, "more")));
    kept.pop_back();
    CHECK(watch.watch(kOwner, fileUri(id, "more")));
}

TEST_CASE("paths of a workspace's files are completed, directories with a slash", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const std::string id = workspaceOf(scene);
    for (const char* path : {"apple.txt", "apricot.txt", "berry.txt", "dir"}) {
        put(scene, id, path, "x");
    }
    const auto proposals = [&](const std::string& typed, const Json& known) {
        return scene
            .postJson(message(
                "completion/complete", 1,
                {{"ref", {{"type", "ref/resource"}, {"uri", "workspace://{id}/files/{+path}"}}},
                 {"argument", {{"name", "path"}, {"value", typed}}},
                 {"context", {{"arguments", known}}}}))
            .at("result")
            .at("completion")
            .at("values");
    };
    CHECK(proposals("ap", {{"id", id}}) == Json{"apple.txt", "apricot.txt"});
    CHECK(proposals("d", {{"id", id}}) == Json{"dir/"});
    CHECK(proposals("dir/ap", {{"id", id}}) == Json{"dir/apple.txt", "dir/apricot.txt"});
    CHECK(scene.house.workspaces.listed.starts_with("dir/"));
    CHECK(proposals("ap", Json::object()) == Json::array());
    CHECK(proposals("ap", {{"id", "ws_none"}}) == Json::array());
}

TEST_CASE("the notification of a change comes before the result of its call", "[unit][mcp]") {
    const auto changes = [](const std::string& sent) {
        std::size_t count = 0;
        for (std::size_t at = 0;
             (at = sent.find("resources/list_changed", at)) != std::string::npos; ++at) {
            ++count;
        }
        return count;
    };
    // Twice, as the second one comes within the pause between two notifications.
    const auto call = [&](Scene& scene, const std::shared_ptr<FakeStream>& stream,
                          const auto& request) {
        for (std::size_t i = 1; i <= 2; ++i) {
            scene.house.events.happen(
                {.type = "workspace.created", .resource = test::kWorkspace, .tenant = "default"});
            REQUIRE(scene.postJson(request()).contains("result"));
            CHECK(changes(stream->text()) == i);
        }
    };
    const Json list{{"name", "workspace_list"}, {"arguments", Json::object()}};
    Scene scene;
    scene.open();
    call(scene, started(scene.send("GET", "")), [&] { return message("tools/call", 1, list); });

    Scene other;
    const Json interest{{"notifications", {{"resourcesListChanged", true}}}};
    const auto stream = started(other.post(modern(other, "subscriptions/listen", 1, interest)));
    call(other, stream, [&] { return modern(other, "tools/call", 2, list); });
}

}  // namespace hearth::mcp
