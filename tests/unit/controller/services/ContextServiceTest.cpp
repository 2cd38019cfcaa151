#include "controller/contract/ResultForms.h"
#include "controller/services/ContextService.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

struct Notebook {
    Ground ground;
    std::unique_ptr<House> house = std::make_unique<House>(ground);
    std::string workspace;

    Notebook() {
        house->declare("p", smallSpec(2));
        REQUIRE(house->filled("p", 2));
        workspace = house->open(house->who, House::request()).id;
    }
    ContextView make(const std::string& name = {}) const {
        ContextRequest request;
        request.name = name;
        return house->contexts.create(house->who, workspace, request);
    }
    std::shared_ptr<Execution> start(const std::string& context, const std::string& code,
                                     std::chrono::milliseconds timeout = 60s) const {
        ExecutionRequest request;
        request.code = code;
        request.context = context;
        request.timeout = timeout;
        return house->executions.start(house->who, workspace, request);
    }
    ExecutionView run(const std::string& context, const std::string& code) const {
        const auto execution = start(context, code);
        REQUIRE(house->settleUntil([&] { return execution->finished(); }));
        return execution->view();
    }
    /// Kills the server and starts it again.
    void restart() {
        house.reset();
        house = std::make_unique<House>(ground);
        house->recover();
    }
};

}  // namespace

TEST_CASE("a context keeps its variables, and its executions name it", "[unit][controller]") {
    Notebook open;
    const ContextView made = open.make();
    CHECK(isId(made.id, "cx_"));
    CHECK(made.language == "python");
    CHECK(made.workspace_id == open.workspace);
    CHECK(open.run(made.id, "set x 41").status == ExecutionStatus::Ok);
    const ExecutionView view = open.run(made.id, "get x");
    CHECK(view.stdout_bytes == "41\n");
    CHECK(view.interpreter == "context");
    CHECK(view.context == made.id);
    CHECK(view.context_kept == true);
    CHECK(open.house->contexts.list(open.house->who, open.workspace).size() == 1);
    CHECK(open.house->contexts.get(open.house->who, made.id).running.empty());
}

TEST_CASE("a busy context refuses at once and an interrupt keeps its state", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const std::string id = open.make().id;
    CHECK(codeOf([&] { house.contexts.interrupt(house.who, id); }) == ErrorCode::Conflict);
    const auto execution = open.start(id, "set x 1\nsleep 1000");
    CHECK(house.contexts.get(house.who, id).running == execution->id());
    CHECK(codeOf([&] { open.start(id, "get x"); }) == ErrorCode::Conflict);
    house.contexts.interrupt(house.who, id);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == ExecutionStatus::Failed);
    CHECK(execution->view().error->at("name") == "KeyboardInterrupt");
    CHECK(execution->view().context_kept == true);
    CHECK(open.run(id, "get x").stdout_bytes == "1\n");
}

TEST_CASE("a restart empties a context and leaves it usable", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const std::string id = open.make().id;
    open.run(id, "set x 1");
    const auto execution = open.start(id, "sleep 1000");
    house.contexts.restart(house.who, id);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == ExecutionStatus::Killed);
    CHECK(open.run(id, "get x").error->at("name") == "NameError");
}

TEST_CASE("a context ends if its process dies with an execution", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const std::string id = open.make().id;
    const auto execution = open.start(id, "stubborn 900000000", 1s);
    REQUIRE(house.settleUntil([&] { return house.contexts.get(house.who, id).running != ""; }));
    REQUIRE(eventually([&] {
        open.ground.manual.advance(1s);
        house.loop.settle();
        return execution->finished();
    }));
    CHECK(execution->view().status == ExecutionStatus::Timeout);
    CHECK(execution->view().context_kept == false);
    CHECK(codeOf([&] { open.start(id, "get x"); }) == ErrorCode::Gone);
    CHECK(codeOf([&] { house.contexts.get(house.who, id); }) == ErrorCode::Gone);
    house.contexts.remove(house.who, id);  // idempotent
}

TEST_CASE("a context ends once, belongs to its tenant, and dies with its workspace",
          "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const std::string first = open.make().id;
    const std::string second = open.make().id;
    const Principal other{"other", Role::Admin, ""};
    CHECK(codeOf([&] { house.contexts.get(other, first); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { house.contexts.remove(other, first); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { house.contexts.list(other, open.workspace); }) == ErrorCode::NotFound);
    house.contexts.remove(house.who, first);
    house.contexts.remove(house.who, first);
    CHECK(codeOf([&] { house.contexts.get(house.who, first); }) == ErrorCode::Gone);
    CHECK(codeOf([&] { house.contexts.remove(house.who, newId("cx_")); }) == ErrorCode::NotFound);
    house.workspaces.close(house.who, open.workspace);
    CHECK(codeOf([&] { house.contexts.get(house.who, second); }) == ErrorCode::Gone);
    house.contexts.remove(house.who, second);
}

TEST_CASE("a name and a key find the same context again", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const ContextView made = open.make("main");
    CHECK_FALSE(made.replayed);
    CHECK(open.make("main").id == made.id);
    CHECK(open.make("main").replayed);
    CHECK(open.make("other").id != made.id);
    ContextRequest request;
    request.idempotency_key = "k";
    request.fingerprint = "f";
    const ContextView keyed = house.contexts.create(house.who, open.workspace, request);
    CHECK(house.contexts.create(house.who, open.workspace, request).id == keyed.id);
    request.fingerprint = "g";
    CHECK(codeOf([&] { house.contexts.create(house.who, open.workspace, request); }) ==
          ErrorCode::IdempotencyMismatch);
    for (std::size_t i = 3; i < 8; ++i) open.make();
    CHECK(codeOf([&] { open.make(); }) == ErrorCode::QuotaExceeded);
    request = {};
    request.language = "bash";
    CHECK(codeOf([&] { house.contexts.create(house.who, open.workspace, request); }) ==
          ErrorCode::Unsupported);
    for (const char* other : {"python3", "py"}) {
        request = {};
        request.name = "main";
        request.language = other;
        const ContextView named = house.contexts.create(house.who, open.workspace, request);
        CHECK(named.language == "python");
        CHECK(named.id == made.id);
        ExecutionRequest run;
        run.code = "set x 1";
        run.context = named.id;
        run.language = other;
        const auto ran = house.executions.start(house.who, open.workspace, run);
        CHECK(house.settleUntil([&] { return ran->finished(); }));
        CHECK(ran->view().language == "python");
    }
    request = {};
    request.language = "cobol";
    CHECK(codeOf([&] { house.contexts.create(house.who, open.workspace, request); }) ==
          ErrorCode::InvalidArgument);
}

TEST_CASE("contexts and their executions survive the server", "[unit][controller]") {
    Notebook open;
    const ContextView made = open.make("main");
    open.run(made.id, "set x 5");
    const std::string running =
        open.start(made.id, "result {\"main\":true,\"mime\":{\"text/plain\":\"7\"}}\nsleep 1000")
            ->id();
    open.restart();
    House& house = *open.house;
    const ContextView again = house.contexts.get(house.who, made.id);
    CHECK(again.name == "main");
    CHECK(again.created_at == made.created_at);
    const auto execution = house.executions.find(house.who, running);
    REQUIRE(house.settleUntil([&] { return execution->resultAt(0) != nullptr; }));
    CHECK(house.contexts.get(house.who, made.id).running == running);
    CHECK(execution->view().context == made.id);
    house.contexts.interrupt(house.who, made.id);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(open.run(made.id, "get x").stdout_bytes == "5\n");
    open.ground.loseData();
}

TEST_CASE("results stand in order, bad ones are counted, and the journal keeps them",
          "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const auto execution = open.start(
        "",
        "echo one\nresult {\"main\":false,\"mime\":{\"text/plain\":\"a\"}}\n"
        "result {\"main\":false,\"mime\":{\"text/x-evil\":\"a\"}}\nresult not json\necho two\n"
        "result {\"main\":true,\"mime\":{\"application/json\":{\"a\":[1]},\"text/plain\":\"b\"}}");
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    const auto check = [](const Execution& which) {
        const ExecutionView view = which.view();
        REQUIRE(view.results.size() == 3);
        CHECK(view.dropped_results == 1);
        CHECK(view.results[0]->behind == 4);
        CHECK_FALSE(view.results[0]->main);
        CHECK(documentOf(*view.results[1]).at("leftOut").at(0).at("type") == "text/x-evil");
        CHECK(view.results[2]->behind == 8);
        CHECK(view.results[2]->main);
        CHECK(documentOf(*view.results[2]).at("mime").at("application/json").at("a").at(0) == 1);
        CHECK(view.stdout_bytes == "one\ntwo\n");
        CHECK(which.resultAt(2) != nullptr);
        CHECK(which.resultAt(3) == nullptr);
        CHECK(view.interpreter == "zygote");
        CHECK_FALSE(view.context);
    };
    check(*execution);
    REQUIRE(
        house.settleUntil([&] { return house.journal.execution(execution->id()).has_value(); }));
    house.loop.settle();
    const auto stored = house.executions.find(house.who, execution->id());
    CHECK(stored != execution);
    check(*stored);
}

TEST_CASE("a result with very many small values loses only that form", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const auto execution = std::dynamic_pointer_cast<LiveExecution>(open.start("", "sleep 1000"));
    REQUIRE(execution);
    std::string values = "1";
    for (int i = 1; i < 90'000; ++i) values += ",1";
    const std::string large =
        R"({"main":true,"mime":{"text/plain":"[1, ...","application/json":[)" + values + "]}}";
    for (int i = 0; i < 6; ++i) execution->result(large);
    REQUIRE(house.settleUntil([&] { return execution->view().result_count == 6; }));
    const ExecutionView view = execution->view();
    CHECK(view.dropped_results == 0);
    for (std::size_t i = 0; i < 6; ++i) {
        const Json result = documentOf(*view.results[i]);
        CHECK(result.at("mime").at("text/plain") == "[1, ...");
        CHECK(result.at("mime").contains("application/json") == (i < 2));
        CHECK(result.contains("leftOut") == (i >= 2));
    }
    house.executions.kill(house.who, execution->id());
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
}

TEST_CASE("the error of a report is readable, whatever it holds", "[unit][controller]") {
    Notebook open;
    House& house = *open.house;
    const auto errorOf = [&](const std::string& report) {
        const auto execution =
            std::dynamic_pointer_cast<LiveExecution>(open.start("", "sleep 1000"));
        REQUIRE(execution);
        agent::ExecResult result;
        result.report = report;
        execution->exited(result);
        REQUIRE(house.settleUntil([&] { return execution->finished(); }));
        return execution->view().error.value_or(Json());
    };
    CHECK(errorOf("").is_null());
    CHECK(errorOf(R"({"name":"ValueError","message":"\udcff","traceback":"t"})") ==
          Json{{"name", "ValueError"}, {"message", "\\udcff"}, {"traceback", "t"}});
    CHECK(errorOf(R"({"name":"E","message":NaN,"traceback":"t"})") ==
          Json{{"name", "E"}, {"message", ""}, {"traceback", "t"}});
    CHECK(errorOf("{\"name\":") ==
          Json{{"name", "Error"}, {"message", "its report cannot be read"}, {"traceback", ""}});
}

TEST_CASE("no context is made while its tenant's records wait for the disk", "[unit][controller]") {
    Ground ground;
    House house(ground, {}, {.pending = 1U << 20U});
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const std::string workspace = house.open(house.who, House::request()).id;
    const auto pages = [&](const char* most) {
        house.journal.writeNow([&](Database& database) {
            database.execute((std::string("PRAGMA max_page_count = ") + most).c_str());
        });
    };
    pages("1");
    for (int i = 0; i < 300; ++i) {
        house.journal.record(ContextRecord{"cx_" + std::to_string(i), workspace, house.who.tenant,
                                           "python", "", std::string(4000, 'x'), "f", 1000, 2000,
                                           "deleted"});
    }
    const std::size_t before = house.contexts.list(house.who, workspace).size();
    CHECK(codeOf([&] { house.contexts.create(house.who, workspace, {}); }) ==
          ErrorCode::Unavailable);
    CHECK(house.contexts.list(house.who, workspace).size() == before);
    pages("1000000");
    CHECK(eventually(
        [&] { return !codeOf([&] { house.contexts.create(house.who, workspace, {}); }); }));
}
