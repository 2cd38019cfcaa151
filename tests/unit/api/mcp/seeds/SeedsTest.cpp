#include <catch2/catch.hpp>

#include "api/mcp/seeds/CommandSeries.h"
#include "api/mcp/seeds/LocalArguments.h"
#include "api/mcp/seeds/Seeds.h"
#include "tests/support/FakeServices.h"
#include "tests/unit/api/mcp/Claimed.h"

namespace hearth::mcp::seeds {
namespace {

using test::FakeExecution;
using House = test::FakeServices;

CallContext callOf(const House& house, const std::string& tenant = "a",
                   const std::string& session = "") {
    CallContext call;
    call.call = std::make_shared<Call>();
    call.who.tenant = tenant;
    call.started_at = house.clock.now();
    call.origin = "http://here";
    call.session = session;
    return call;
}

Seed seedOf(House& house, const std::string& name) {
    for (Seed& seed : seeds(house.services)) {
        if (seed.name == name) return seed;
    }
    throw std::runtime_error("no seed " + name);
}

/// Calls a tool like MCP and settles it. Everything that the tool waits for must be done before.
ToolResult use(House& house, const std::string& seed, const std::string& name,
               const Json& arguments, const CallContext& call) {
    const Toolbox tools(house.services, seedOf(house, seed).tools);
    const Tool* tool = tools.find(name);
    REQUIRE(tool != nullptr);
    return resultNow(call, tools.call(*tool, call, arguments));
}

Json valueOf(House& house, const std::string& seed, const std::string& name,
             const Json& arguments) {
    return plainValue(use(house, seed, name, arguments, callOf(house)));
}

std::vector<std::string> keysOf(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
}

/// Returns "name(a, b=null)": a tool as the seeds' documents write it.
std::string signatureOf(const Tool& tool) {
    const Json required = tool.schema.value("required", Json::array());
    std::string text;
    for (const auto& [name, schema] : tool.schema["properties"].items()) {
        text += (text.empty() ? "" : ", ") + name;
        const bool needed = std::find(required.begin(), required.end(), name) != required.end();
        if (!needed) text += "=" + schema["default"].dump();
        if (schema.value("type", "") == "array") text += "[]";
    }
    return tool.name + "(" + text + ")";
}

std::string openIn(House& house, const std::string& tenant = "a") {
    return plainValue(use(house, "s3", "create_python_env", Json::object(), callOf(house, tenant)));
}

}  // namespace

TEST_CASE("each seed lists exactly its tools with its arguments and defaults", "[unit][mcp]") {
    House house;
    const std::map<std::string, std::vector<std::string>> documented = {
        {"s0",
         {R"(sandbox_initialize(image="python:3.9-slim", use_persistent=true))",
          "sandbox_exec(container_id, commands[], workspace_id=null)",
          "write_file_sandbox(container_id, file_name, file_contents, workspace_id=null, "
          "dest_dir=null)",
          "copy_file(container_id, local_src_file, workspace_id=null, dest_path=null)",
          "copy_project(container_id, local_src_dir, workspace_id=null, dest_dir=null)",
          "copy_file_from_sandbox(container_id, container_src_path, workspace_id=null, "
          "local_dest_path=null)",
          "sandbox_stop(container_id, is_persistent=false)",
          "clean_workspace(container_id, workspace_id)", "get_container_logs(container_id)"}},
        {"s1",
         {"list_sandboxes()", "create_sandbox(name=null)",
          "install_packages_in_sandbox(sandbox_id, package_names[])",
          "check_packages_installation_status(sandbox_id, package_names[])",
          "execute_python_code(sandbox_id, code)", "execute_terminal_command(sandbox_id, command)",
          R"(upload_file_to_sandbox(sandbox_id, local_file_path, dest_path="/app/results"))"}},
        {"s2",
         {R"(initialize_sandbox(image="alpine:latest"))",
          R"(execute_code(code, language="python"))", "stop_sandbox()"}},
        {"s3",
         {"create_python_env()", "execute_python_code(container_id, code)",
          "install_package_in_env(container_id, package_name)",
          "check_package_status(container_id, package_name)"}},
    };
    const std::vector<Seed> all = seeds(house.services);
    REQUIRE(all.size() == documented.size());
    for (const Seed& seed : all) {
        std::vector<std::string> signatures;
        for (const Tool& tool : seed.tools) {
            signatures.push_back(signatureOf(tool));
            CHECK(tool.schema["type"] == "object");
            CHECK_FALSE(tool.description.empty());
        }
        CHECK(signatures == documented.at(seed.name));
        REQUIRE(seed.bare.size() == seed.tools.size());
        CHECK_FALSE(seed.instructions.empty());
        CHECK(seed.server_info["name"].is_string());
    }
    CHECK(seedPort("s0") == 9520);
    CHECK(seedPort("s1") == 8000);
    CHECK_FALSE(seedPort("s2"));
    CHECK(seedPort("s3") == 8000);
    CHECK_FALSE(isSeed("s4"));
}

TEST_CASE("an optional argument may be absent, null or a text", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    for (const Json& workspace : {Json(), Json(id)}) {
        const Json out = valueOf(house, "s0", "write_file_sandbox",
                                 {{"container_id", id},
                                  {"file_name", "f"},
                                  {"file_contents", "x"},
                                  {"workspace_id", workspace}});
        CHECK(out == Json{{"success", true}, {"file_path", "/workspace/f"}});
    }
    const ToolResult wrong =
        use(house, "s0", "sandbox_exec",
            {{"container_id", id}, {"commands", {"ls"}}, {"workspace_id", 5}}, callOf(house));
    CHECK(wrong.is_error);
    CHECK(wrong.content[0]["text"].get<std::string>().find("workspace_id must be a string") !=
          std::string::npos);
}

TEST_CASE("results are the seeds' own: a bare text, a list, an object", "[unit][mcp]") {
    House house;
    const ToolResult made = use(house, "s3", "create_python_env", Json::object(), callOf(house));
    const std::string id = made.content[0]["text"];
    CHECK(isId(id, "ws_"));
    CHECK(made.structured == Json{{"result", id}});
    const ToolResult listed = use(house, "s1", "list_sandboxes", Json::object(), callOf(house));
    const Json list = Json::parse(listed.content[0]["text"].get<std::string>());
    REQUIRE(list.size() == 1);
    CHECK(keysOf(list[0]) == std::vector<std::string>{"sandbox_id", "sandbox_short_id", "name",
                                                      "status", "image", "created", "last_used"});
    CHECK(plainValue(listed) == list);
    const ToolResult ran = use(house, "s3", "execute_python_code",
                               {{"container_id", id}, {"code", "1"}}, callOf(house));
    CHECK(Json::parse(ran.content[0]["text"].get<std::string>()) == ran.structured);
    CHECK(keysOf(ran.structured) == std::vector<std::string>{"stdout", "stderr", "exit_code",
                                                             "files", "file_links", "status",
                                                             "duration_ms"});
}

TEST_CASE("failures have the seed's form over MCP and are thrown for plain HTTP", "[unit][mcp]") {
    House house;
    const std::string none = "ws_" + std::string(32, '0');
    house.executions.behave = [](const auto&, const auto&) {
        throw Error(ErrorCode::NotFound, "no such workspace");
    };
    const auto failure = [&](const std::string& seed, const std::string& tool, Json arguments) {
        const ToolResult result = use(house, seed, tool, arguments, callOf(house));
        CHECK_FALSE(result.is_error);
        return plainValue(result);
    };
    const Json s0 = failure("s0", "sandbox_exec", {{"container_id", none}, {"commands", {"ls"}}});
    CHECK(s0["success"] == false);
    CHECK(s0["error"].get<std::string>().starts_with("NOT_FOUND: "));
    const Json s1 = failure("s1", "execute_python_code", {{"sandbox_id", none}, {"code", "1"}});
    CHECK(s1["exit_code"] == -1);
    CHECK(s1["machine_file_links"] == Json::array());
    CHECK(s1["error"].get<std::string>().starts_with("NOT_FOUND: "));
    CHECK(failure("s1", "upload_file_to_sandbox",
                  {{"sandbox_id", none}, {"local_file_path", "f"}})["error"] == true);
    CHECK(failure("s2", "execute_code", {{"code", "1"}})["error_type"] == "StateError");
    CHECK(failure("s3", "check_package_status",
                  {{"container_id", none}, {"package_name", "numpy"}})["status"] == "error");
    const Seed seed = seedOf(house, "s3");
    const Json arguments{{"container_id", none}, {"code", "1"}};
    CHECK_THROWS_AS(seed.bare[1].handler(callOf(house), Arguments(arguments)), Error);
    house.workspaces.refuse_create = Error(ErrorCode::PoolExhausted, "all are in use");
    CHECK(use(house, "s3", "create_python_env", Json::object(), callOf(house)).is_error);
}

TEST_CASE("only the default image of a seed stands for any Python", "[unit][mcp]") {
    House house;
    house.workspaces.images = {"python", "node:22"};
    CHECK(valueOf(house, "s0", "sandbox_initialize", Json::object())["success"] == true);
    CHECK(valueOf(house, "s0", "sandbox_initialize", {{"image", "python:3.9-slim"}})["success"] ==
          true);
    CHECK(valueOf(house, "s0", "sandbox_initialize", {{"image", "node:22"}})["success"] == true);
    const Json refused = valueOf(house, "s0", "sandbox_initialize", {{"image", "alpine:latest"}});
    CHECK(refused["success"] == false);
    CHECK(refused["error"].get<std::string>().find("pools have: python") != std::string::npos);
    CHECK(valueOf(house, "s2", "initialize_sandbox", {{"image", "python:3.9-slim"}})["status"] ==
          "error");
    CHECK(valueOf(house, "s2", "initialize_sandbox", Json::object())["status"] == "success");
    const Json alone = valueOf(house, "s0", "sandbox_initialize", {{"use_persistent", false}});
    CHECK_FALSE(alone.contains("workspace_id"));
    CHECK(alone["mode"] == "standalone");
}

TEST_CASE("a call without a sandbox id uses the sandbox of its principal and session",
          "[unit][mcp]") {
    House house;
    const auto at = [&](const std::string& tool, const std::string& tenant,
                        const std::string& session, const Json& arguments = Json::object()) {
        return plainValue(use(house, "s2", tool, arguments, callOf(house, tenant, session)));
    };
    const Json first = at("initialize_sandbox", "a", "one");
    CHECK(at("initialize_sandbox", "a", "one") == first);
    const Json second = at("initialize_sandbox", "a", "two");
    CHECK(second["container_id"] != first["container_id"]);
    CHECK(at("execute_code", "b", "one", {{"code", "1"}})["error_type"] == "StateError");
    CHECK(at("execute_code", "a", "one", {{"code", "1"}})["status"] == "success");
    const Json other = at("initialize_sandbox", "a", "one", {{"image", "python"}});
    CHECK(other["error_type"] == "StateError");
    CHECK(at("stop_sandbox", "a", "one")["status"] == "success");
    CHECK(at("execute_code", "a", "one", {{"code", "1"}})["error_type"] == "StateError");
    CHECK(at("execute_code", "a", "two", {{"code", "1"}})["status"] == "success");
}

TEST_CASE("both channels of S2 are one text, and a failure has its exit code", "[unit][mcp]") {
    House house;
    house.executions.behave = [](const auto&, const auto& execution) {
        execution->print("out", "err");
        execution->end("failed", 3);
    };
    valueOf(house, "s2", "initialize_sandbox", Json::object());
    const Json out = valueOf(house, "s2", "execute_code", {{"code", "1"}});
    CHECK(out["output"] == "outerr");
    CHECK(out["exit_code"] == 3);
    CHECK(out["error_type"] == "ExecutionError");
}

TEST_CASE("empty ids name nothing", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    for (const auto& [container, workspace] :
         {std::pair<std::string, std::string>{"", ""}, {id, ""}, {"", id}}) {
        const Json out = valueOf(house, "s0", "clean_workspace",
                                 {{"container_id", container}, {"workspace_id", workspace}});
        CHECK(out["success"] == false);
        CHECK(out["error"].get<std::string>().find("is empty") != std::string::npos);
    }
    CHECK(valueOf(house, "s1", "list_sandboxes", Json::object()).size() == 1);
}

TEST_CASE("a long installation is reported as installing, and found again by its workspace",
          "[unit][mcp]") {
    House house;
    house.workspaces.network = egress::NetworkMode::Mirror;
    const std::string id = openIn(house);
    const Json names{{"container_id", id}, {"package_name", "Some_Package==1"}};
    std::shared_ptr<FakeExecution> install;
    house.executions.behave = [&](const auto&, const auto& execution) { install = execution; };
    const Json begun = valueOf(house, "s3", "install_package_in_env", names);
    CHECK(begun["status"] == "installing");
    CHECK(begun["success"].is_null());
    CHECK(begun["complete"] == false);
    const auto check = [&] {
        return valueOf(house, "s3", "check_package_status",
                       {{"container_id", id}, {"package_name", "some-package"}});
    };
    CHECK(check()["status"] == "installing");
    CHECK(check()["elapsed_seconds"].is_number());
    install->print(R"({"packages": {"Some_Package": {"state": "failed", "error": "no such"}}})");
    install->end("failed", 1);
    house.executions.behave = [](const auto&, const auto& execution) {
        execution->print(R"({"packages": {"some-package": {"state": "absent"}}})");
        execution->end("ok", 0);
    };
    const Json failed = check();
    CHECK(failed["status"] == "failed");
    CHECK(failed["message"].get<std::string>().find("no such") != std::string::npos);
    house.executions.behave = [](const auto&, const auto& execution) {
        execution->print(
            R"({"packages": {"some-package": {"state": "installed", "version": "1"}}})");
        execution->end("ok", 0);
    };
    CHECK(check()["status"] == "success");
}

TEST_CASE("a series reports the result of each command, and forged marks stay text",
          "[unit][mcp]") {
    const std::vector<std::string> commands{"a", "b", "c"};
    const CommandSeries series = commandSeries(commands);
    CHECK(std::vector<std::string>(series.argv.end() - 3, series.argv.end()) == commands);
    CHECK(commandSeries(commands).mark != series.mark);
    const std::string& mark = series.mark;
    controller::ExecutionView view;
    const auto results = [&] { return seriesResults(commands, mark, view); };

    view.stdout_bytes = "one" + mark + " 1 0\n" + mark + " x\n" + mark + " 2 7\n";
    view.stderr_bytes = mark + " 1 0\nwrong\n" + mark + " 2 7\n";
    REQUIRE(results().size() == 2);
    CHECK(results()[0].stdout_bytes == "one");
    CHECK(results()[0].stderr_bytes.empty());
    CHECK(results()[1].stdout_bytes == mark + " x\n");
    CHECK(results()[1].stderr_bytes == "wrong\n");
    CHECK(results()[1].exit_code == 7);

    CHECK(withoutMarks(view.stdout_bytes) == "one" + mark + " x\n");

    // Broken off in the second command.
    view.stdout_bytes = mark + " 1 0\nbegun";
    view.stderr_bytes = mark + " 1 0\n";
    REQUIRE(results().size() == 2);
    CHECK(results()[1].stdout_bytes == "begun");
    CHECK(results()[1].exit_code == -1);

    // The middle of a long output is missing, and with it the second command's mark.
    view.stdout_bytes = "a" + mark + " 1 0\nxxxx" + mark + " 3 0\n";
    view.stderr_bytes = mark + " 1 0\n" + mark + " 3 0\n";
    REQUIRE(results().size() == 3);
    CHECK(results()[1].exit_code == 0);
    CHECK(results()[2].exit_code == 0);

    view.stdout_bytes = view.stderr_bytes = "";
    REQUIRE(results().size() == 1);
    CHECK(results()[0].exit_code == -1);
}

TEST_CASE("local paths are refused with a URL, and the bridge knows which files to move",
          "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    const Json put = valueOf(house, "s0", "copy_project",
                             {{"container_id", id}, {"local_src_dir", "/mine/pro ject/"}});
    CHECK(put["success"] == false);
    CHECK(put["upload_url"] == "http://here/v1/workspaces/" + id + "/archive?path=pro%20ject");
    const Json file = valueOf(house, "s1", "upload_file_to_sandbox",
                              {{"sandbox_id", id}, {"local_file_path", "data/a.csv"}});
    CHECK(file["upload_url"] == "http://here/v1/workspaces/" + id + "/files/a.csv");

    CHECK(localArgument("s0", "sandbox_exec") == nullptr);
    CHECK(localArgument("s3", "copy_file") == nullptr);
    const LocalArgument* project = localArgument("s0", "copy_project");
    REQUIRE(project != nullptr);
    CHECK(project->kind == LocalArgument::Kind::Tree);
    const auto tree = localMove(*project, {{"container_id", "c"},
                                           {"workspace_id", "w"},
                                           {"local_src_dir", "../pro/"},
                                           {"dest_dir", nullptr}});
    REQUIRE(tree);
    CHECK(tree->workspace == "w");
    CHECK(tree->local == "../pro/");
    CHECK(tree->remote == "pro");
    CHECK(localResult(*project, *tree, "../pro", 0) ==
          Json{{"success", true}, {"dest_dir", "/workspace/pro"}});

    const LocalArgument* upload = localArgument("s1", "upload_file_to_sandbox");
    REQUIRE(upload != nullptr);
    CHECK(localMove(*upload, {{"sandbox_id", "s"}, {"local_file_path", "d/a.csv"}})->remote ==
          "a.csv");
    CHECK(localMove(*upload, {{"sandbox_id", "s"},
                              {"local_file_path", "d/a.csv"},
                              {"dest_path", "/app/results/in"}})
              ->remote == "in/a.csv");
    CHECK_FALSE(localMove(*upload, {{"sandbox_id", "s"}}));

    const LocalArgument* get = localArgument("s0", "copy_file_from_sandbox");
    REQUIRE(get != nullptr);
    CHECK(get->direction == LocalArgument::Direction::Get);
    const auto saved =
        localMove(*get, {{"container_id", "c"}, {"container_src_path", "out/plot.png"}});
    REQUIRE(saved);
    CHECK(saved->local == "plot.png");
    CHECK(localResult(*get, *saved, "/mine/plot.png", 5) ==
          Json{{"success", true}, {"local_path", "/mine/plot.png"}, {"file_size", 5}});
}

}  // namespace hearth::mcp::seeds
