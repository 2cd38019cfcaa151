#include <future>

#include "controller/services/WorkspaceService.h"
#include "tests/support/House.h"
#include "tests/unit/controller/Principals.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

namespace {

const Principal kBlue{"blue", Role::User, ""};
const Principal kAdmin{"ops", Role::Admin, ""};

/// A workspace of tenant red with a description of its own and an execution.
struct Confidential : Ground {
    House house{*this};
    std::string workspace;
    std::string execution;

    Confidential() {
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        WorkspaceRequest request = House::request();
        request.name = "merger-plan";
        request.labels = {{"customer", "acme"}};
        workspace = house.open(kTenant, request).id;
        ExecutionRequest run;
        run.command = "echo confidential";
        const auto started = house.executions.start(kTenant, workspace, run);
        REQUIRE(house.settleUntil([&] { return started->finished(); }));
        execution = started->id();
    }
};

bool holdsSecret(const std::string& text) {
    for (const char* secret : {"merger-plan", "customer", "acme", "confidential"}) {
        if (text.find(secret) != std::string::npos) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a refused move names the path that is bad", "[unit][controller]") {
    Confidential work;
    WorkspaceService& service = work.house.workspaces;
    service.makeDirectory(kTenant, work.workspace, "a");
    const auto refusal = [&](const std::string& from, const std::string& to) -> std::string {
        try {
            service.moveFile(kTenant, work.workspace, from, to);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(refusal("../x", "../y") == "from ../x: not a path beneath the workspace");
    CHECK(refusal("none", "b") == "from none: no such file");
    CHECK(refusal("a", "../y") == "to ../y: not a path beneath the workspace");
    CHECK(refusal("a", "b").empty());
}

TEST_CASE("a workspace's events have the trace ids of the requests that caused them",
          "[unit][controller]") {
    Confidential work;
    Principal who = kTenant;
    who.trace.trace_id = "0af7651916cd43dd8448eb211c80319c";
    const std::string id = work.house.open(who, House::request()).id;
    who.trace.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    work.house.workspaces.close(who, id);
    std::vector<std::string> traces;
    for (const Event& event : work.house.events.list(kTenant, {0, "", id})) {
        traces.push_back(event.type + " " + event.trace_id);
    }
    CHECK(traces ==
          std::vector<std::string>{"workspace.created 0af7651916cd43dd8448eb211c80319c",
                                   "workspace.reclaimed 4bf92f3577b34da6a3ce929d0e0e4736"});
}

TEST_CASE("an execution's end has the trace id of its request", "[unit][controller]") {
    Confidential work;
    Principal who = kTenant;
    who.trace.trace_id = "0af7651916cd43dd8448eb211c80319c";
    ExecutionRequest run;
    run.command = "true";
    const std::string id = work.house.executions.start(who, work.workspace, run)->id();
    std::vector<Event> events;
    REQUIRE(work.house.settleUntil([&] {
        events = work.house.events.list(kTenant, {.type = "execution.finished", .resource = id});
        return !events.empty();
    }));
    CHECK(events.at(0).trace_id == who.trace.trace_id);
}

TEST_CASE("a claim, a refusal and an end are one line of the log each", "[unit][controller]") {
    Confidential work;
    const auto has = [](const std::string& line, std::initializer_list<const char*> parts) {
        return std::all_of(parts.begin(), parts.end(), [&](const char* part) {
            return line.find(" " + std::string(part)) != std::string::npos;
        });
    };
    REQUIRE(work.house.logged("workspace.bound").size() == 1);
    CHECK(has(work.house.logged("workspace.bound")[0],
              {"level=info", "pool=p", "tenant=red", "source=warm", "seconds=", "queue_s=0",
               "pick_s=", "bind_s=", "trace="}));
    Principal who = kTenant;
    who.trace.trace_id = "0af7651916cd43dd8448eb211c80319c";
    WorkspaceRequest wrong = House::request();
    wrong.pool = "customer";
    CHECK(codeOf([&] { work.house.open(who, wrong); }) == ErrorCode::NotFound);
    REQUIRE(work.house.logged("claim.refused").size() == 1);
    CHECK(has(work.house.logged("claim.refused")[0],
              {"level=info", "tenant=red", "code=NOT_FOUND",
               "seconds=", "trace=0af7651916cd43dd8448eb211c80319c"}));
    CHECK(work.house.metrics.render().find(
              "hearth_claims_total{pool=\"\",reason=\"NOT_FOUND\",result=\"refused\"} 1") !=
          std::string::npos);
    work.house.workspaces.close(who, work.workspace);
    REQUIRE(work.house.logged("workspace.ended").size() == 1);
    CHECK(has(work.house.logged("workspace.ended")[0],
              {"level=info", "pool=p", "tenant=red", "reason=deleted",
               "seconds=", "trace=0af7651916cd43dd8448eb211c80319c"}));
    CHECK(work.house.metrics.render().find("hearth_reclaim_lag_seconds_count{pool=\"p\"} ") ==
          std::string::npos);
    CHECK_FALSE(holdsSecret(readText(work.dir.file("log"))));
}

TEST_CASE("an operator sees id, pool and age of another tenant's workspace, not name and labels",
          "[unit][controller]") {
    Confidential work;
    WorkspaceService& workspaces = work.house.workspaces;
    for (const WorkspaceView& view :
         {workspaces.get(kOperator, work.workspace), workspaces.list(kOperator, {}).items.at(0)}) {
        CHECK(view.id == work.workspace);
        CHECK(view.pool == "p");
        CHECK(view.tenant == "red");
        CHECK_FALSE(view.created_at.empty());
        CHECK_FALSE(view.name);
        CHECK(view.labels.empty());
        CHECK(view.credentials.empty());
    }
    for (const Principal& who : {kTenant, kAdmin}) {
        CHECK(workspaces.get(who, work.workspace).name == "merger-plan");
        CHECK(workspaces.list(who, {}).items.at(0).labels.at("customer") == "acme");
    }
    CHECK(codeOf([&] { workspaces.get(kBlue, work.workspace); }) == ErrorCode::NotFound);
}

TEST_CASE("a search by label reveals no label of another tenant", "[unit][controller]") {
    Confidential work;
    ListQuery query;
    query.labels = {{"customer", "acme"}};
    CHECK(work.house.workspaces.list(kOperator, query).items.empty());
    CHECK(work.house.workspaces.list(kAdmin, query).items.size() == 1);
    CHECK(work.house.workspaces.list(kTenant, query).items.size() == 1);
}

TEST_CASE("only its tenant and an admin see an execution", "[unit][controller]") {
    Confidential work;
    ExecutionService& executions = work.house.executions;
    for (const Principal& who : {kOperator, kBlue}) {
        CHECK(codeOf([&] { executions.find(who, work.execution); }) == ErrorCode::NotFound);
        CHECK(codeOf([&] { executions.list(who, work.workspace); }) == ErrorCode::NotFound);
        CHECK(codeOf([&] { executions.kill(who, work.execution); }) == ErrorCode::NotFound);
    }
    CHECK(executions.find(kAdmin, work.execution)->view().stdout_bytes == "confidential\n");
    CHECK(executions.list(kAdmin, work.workspace).size() == 1);
    const std::string empty = work.house.open(kTenant, House::request()).id;
    CHECK(executions.list(kAdmin, empty).empty());
    CHECK(codeOf([&] { executions.list(kAdmin, "ws_unknown"); }) == ErrorCode::NotFound);
}

TEST_CASE("an operator ends another tenant's workspace and is told why it ended",
          "[unit][controller]") {
    Confidential work;
    WorkspaceService& workspaces = work.house.workspaces;
    CHECK(codeOf([&] { workspaces.close(kBlue, work.workspace); }) == ErrorCode::NotFound);
    CHECK(workspaces.get(kTenant, work.workspace).phase == WorkspacePhase::Active);
    workspaces.close(kOperator, work.workspace);
    REQUIRE(work.house.settleUntil([&] { return !work.house.table.find(work.workspace); }));
    workspaces.close(kOperator, work.workspace);  // idempotent
    for (const Principal& who : {kOperator, kTenant}) {
        const Error gone = errorOf([&] { workspaces.get(who, work.workspace); });
        CHECK(gone.code() == ErrorCode::Gone);
        CHECK(gone.endedReason() == "operator");
    }
    CHECK(codeOf([&] { workspaces.get(kBlue, work.workspace); }) == ErrorCode::NotFound);
}

TEST_CASE("an operator cannot change, touch or read another tenant's workspace",
          "[unit][controller]") {
    Confidential work;
    WorkspaceService& workspaces = work.house.workspaces;
    WorkspacePatch patch;
    patch.labels.emplace()["x"] = "y";
    CHECK(codeOf([&] { workspaces.patch(kOperator, work.workspace, patch); }) ==
          ErrorCode::NotFound);
    CHECK(codeOf([&] { workspaces.touch(kOperator, work.workspace); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { workspaces.stat(kOperator, work.workspace, "f"); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { workspaces.usage(kOperator, work.workspace); }) == ErrorCode::NotFound);
}

TEST_CASE("events show operators no text of other tenants", "[unit][controller]") {
    Confidential work;
    work.house.workspaces.close(kTenant, work.workspace);
    REQUIRE(work.house.settleUntil([&] { return !work.house.table.find(work.workspace); }));
    bool created = false;
    bool ended = false;
    for (const Event& event : work.house.events.list(kOperator, {})) {
        INFO(event.type << " " << event.message);
        CHECK_FALSE(
            holdsSecret(event.type + event.resource + event.pool + event.reason + event.message));
        created = created || (event.type == "workspace.created" && event.tenant == "red");
        ended = ended || (event.type == "workspace.reclaimed" && event.reason == "deleted");
    }
    CHECK(created);
    CHECK(ended);
}

TEST_CASE("a workspace whose end has just begun is gone, not unknown", "[unit][controller]") {
    Confidential filled;
    House& house = filled.house;
    REQUIRE(house.table.find(filled.workspace)->beginEnd(EndReason::Deleted));
    REQUIRE(house.table.find(filled.workspace));  // not removed yet
    const Error gone = errorOf([&] { house.workspaces.touch(kTenant, filled.workspace); });
    CHECK(gone.code() == ErrorCode::Gone);
    CHECK(gone.endedReason() == "deleted");
    CHECK(codeOf([&] { house.workspaces.touch(kBlue, filled.workspace); }) == ErrorCode::NotFound);
}

TEST_CASE("every operation reports the reason of an end at once, whatever the disk does",
          "[unit][controller]") {
    Confidential filled;
    House& house = filled.house;
    std::promise<void> disk;
    // Nothing that is queued from here on is written, not even that the workspace was made.
    house.journal.write([&](Database&) { disk.get_future().wait(); });
    const std::string id = house.open(kTenant, House::request()).id;
    const std::string context = house.contexts.create(kTenant, filled.workspace, {}).id;
    house.workspaces.close(kTenant, id);
    house.workspaces.close(kTenant, filled.workspace);
    const auto reason = [](auto&& call) { return errorOf(call).endedReason(); };
    ExecutionRequest run;
    run.command = "true";
    CHECK(reason([&] { house.workspaces.get(kTenant, id); }) == "deleted");
    CHECK(reason([&] { house.workspaces.touch(kTenant, id); }) == "deleted");
    CHECK(reason([&] { house.executions.start(kTenant, id, run); }) == "deleted");
    CHECK(reason([&] { house.contexts.list(kTenant, id); }) == "deleted");
    CHECK(codeOf([&] { house.workspaces.get(kBlue, id); }) == ErrorCode::NotFound);
    disk.set_value();
    CHECK(reason([&] { house.contexts.get(kTenant, context); }) == "workspace");
    CHECK(reason([&] { house.workspaces.get(kTenant, id); }) == "deleted");
}
