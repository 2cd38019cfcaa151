#include <catch2/catch.hpp>

#include "api/mcp/resources/WorkspaceResources.h"
#include "api/mcp/tools/RunText.h"
#include "api/mcp/tools/Toolbox.h"
#include "tests/support/FakeServices.h"
#include "tests/unit/api/mcp/Claimed.h"

namespace hearth::mcp {
namespace {

using test::FakeExecution;
using House = test::FakeServices;

CallContext callOf(const House& house) {
    CallContext call;
    call.call = std::make_shared<Call>();
    call.who = {"a", controller::Role::User, ""};
    call.started_at = house.clock.now();
    return call;
}

/// Calls a tool and settles it. Everything that the tool waits for must be done before.
ToolResult use(House& house, const std::string& name, const Json& arguments) {
    const Toolbox tools(house.services, nativeTools(house.services));
    const Tool* tool = tools.find(name);
    REQUIRE(tool != nullptr);
    const CallContext call = callOf(house);
    return resultNow(call, tools.call(*tool, call, arguments));
}

std::string textOf(const ToolResult& result) {
    std::string all;
    for (const Json& part : result.content) all += part.value("text", "");
    return all;
}

std::string openIn(House& house) {
    const std::string text = textOf(use(house, "workspace_open", Json::object()));
    return text.substr(0, text.find('\n'));
}

/// Checks that clients that pass schemas on to models accept this one.
void checkPortable(const Json& schema) {
    for (const auto& [key, value] : schema.items()) {
        CHECK(key != "$ref");
        CHECK(key != "$defs");
        if (value.is_structured()) checkPortable(value);
    }
}

}  // namespace

TEST_CASE("ten tools are listed in a fixed order with portable schemas", "[unit][mcp]") {
    House house;
    const Json tools = Toolbox(house.services, nativeTools(house.services)).list({})["tools"];
    REQUIRE(tools.size() == 10);
    CHECK(tools.front()["name"] == "pool_list");
    CHECK(tools.back()["name"] == "file_get");
    for (const Json& tool : tools) {
        INFO(tool["name"]);
        const std::string name = tool["name"];
        CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos);
        CHECK(tool["inputSchema"]["type"] == "object");
        CHECK(tool["inputSchema"]["properties"].is_object());
        CHECK_FALSE(tool.contains("outputSchema"));
        CHECK(tool["annotations"].contains("readOnlyHint"));
        CHECK(tool["description"].get<std::string>().size() < 1'000);
        checkPortable(tool["inputSchema"]);
    }
    CHECK(Toolbox(house.services, nativeTools(house.services)).list({})["tools"] == tools);
}

TEST_CASE("descriptions carry the pools' real limits", "[unit][mcp]") {
    House house;
    const std::string all = dumpJson(Toolbox(house.services, nativeTools(house.services)).list({}));
    CHECK(all.find("python: languages python, sh; 1 cpu, 512Mi memory") != std::string::npos);
    CHECK(all.find("{pools}") == std::string::npos);
}

TEST_CASE("descriptions stay short however many pools there are", "[unit][mcp]") {
    House house;
    for (int i = 2; i <= 30; ++i) house.pools.names.push_back("pool-" + std::to_string(i));
    const Json tools = Toolbox(house.services, nativeTools(house.services)).list({})["tools"];
    std::size_t with_pools = 0;
    for (const Json& tool : tools) {
        const std::string description = tool["description"];
        INFO(description);
        CHECK(description.size() < 1'000);
        if (description.find("Pools: python: ") == std::string::npos) continue;
        ++with_pools;
        CHECK(description.find(" | pool-2: ") != std::string::npos);
        CHECK(description.ends_with(" more: pool_list."));
        std::size_t shown = 1;
        while (description.find(" | pool-" + std::to_string(shown + 1) + ": ") !=
               std::string::npos) {
            ++shown;
        }
        CHECK(description.find(" | ... and " + std::to_string(30 - shown) + " more") !=
              std::string::npos);
    }
    CHECK(with_pools == 2);
    const std::string all = textOf(use(house, "pool_list", Json::object()));
    CHECK(all.find("pool-30: ") != std::string::npos);  // pool_list lists all pools
}

TEST_CASE("a model learns what a pool has installed", "[unit][mcp]") {
    House house;
    CHECK(textOf(use(house, "pool_list", Json::object())).find("; installed: numpy==2.1") !=
          std::string::npos);
}

TEST_CASE("a model learns which GPUs a pool's workspaces have", "[unit][mcp]") {
    House house;
    house.pools.names = {"python", "one", "two", "shared"};
    house.pools.gpus = {
        {"one", {.count = 1, .products = {"H100", "A100"}}},
        {"two", {.count = 2, .products = {}}},
        {"shared", {.count = 1, .products = {}, .sharing = controller::GpuSharing::Shared}}};
    const std::string all = textOf(use(house, "pool_list", Json::object()));
    const auto told = [&](const std::string& pool) {
        const std::size_t begin = all.find(pool + ": ");
        REQUIRE(begin != std::string::npos);
        return all.substr(begin, all.find('\n', begin) - begin);
    };
    CHECK(told("python").find("GPU") == std::string::npos);
    CHECK(told("one").find(", 1 GPU (H100 or A100), ") != std::string::npos);
    CHECK(told("two").find(", 2 GPUs, ") != std::string::npos);
    CHECK(told("shared").find(", 1 GPU shared with other workspaces, ") != std::string::npos);
}

TEST_CASE("bad arguments are a result that names what is allowed", "[unit][mcp]") {
    House house;
    const std::vector<std::pair<Json, std::string>> rows = {
        {{{"comand", "ls"}}, "unknown argument comand; allowed: code, language, command"},
        {{{"command", 5}}, "command must be a string"},
        {{{"command", ""}}, "command must not be empty"},
        {{{"command", "ls"}, {"timeout_s", 0}}, "timeout_s must be at least 1"},
        {{{"command", "ls"}, {"env", {{"A", 1}}}}, "env.A must be a string"},
        {{{"command", "ls"}, {"files", {{{"text", "x"}}}}}, "files[0].path is required"},
        {Json::array(), "arguments must be an object"},
        {Json::object(), "exactly one of code and command"},
        {{{"command", "ls"}, {"code", "1"}}, "exactly one of code and command"},
        {{{"command", "ls"}, {"files", {{{"path", "a"}, {"base64", "%"}}}}}, "base64"},
    };
    for (const auto& [arguments, expected] : rows) {
        const ToolResult result = use(house, "run", arguments);
        INFO(expected << " in " << textOf(result));
        CHECK(result.is_error);
        CHECK(textOf(result).find(expected) != std::string::npos);
    }
}

TEST_CASE("a run selects its context by name", "[unit][mcp]") {
    House house;
    const std::string workspace = openIn(house);
    house.executions.behave = [](const auto&, const auto& execution) { execution->end("ok", 0); };
    use(house, "run", {{"workspace_id", workspace}, {"code", "x = 1"}, {"context", "main"}});
    CHECK(house.contexts.request.name == "main");
    CHECK(house.executions.request.context == test::kContext);
    CHECK(house.executions.request.language == "python");
    for (const Json& wrong : std::vector<Json>{
             {{"code", "1"}, {"context", "main"}},
             {{"workspace_id", workspace}, {"command", "ls"}, {"context", "main"}},
             {{"workspace_id", workspace}, {"code", "1"}, {"context", "m"}, {"cwd", "d"}}}) {
        CHECK(use(house, "run", wrong).is_error);
    }
}

TEST_CASE("results of code reach the model as text and images", "[unit][mcp]") {
    House house;
    const std::string png = base64Encode("\x89PNG\r\n\x1a\n and so on");
    house.executions.behave = [&](const auto&, const auto& execution) {
        execution->print("out\n");
        for (int i = 0; i < 6; ++i) {
            execution->showAll({{"text/plain", "<Figure size 1x1>"}, {"image/png", png}}, false);
        }
        execution->showAll({{"image/jpeg", base64Encode(std::string(kImageCap + 3, 'x'))}}, false);
        execution->showAll({{"text/html", "<table>"}, {"text/plain", "a b"}}, false);
        execution->showAll({{"text/html", "<i>only</i>"}}, false);
        execution->showAll({{"application/json", {{"k", 1}}}, {"text/plain", "{'k': 1}"}}, true);
        execution->end("ok", 0);
    };
    const ToolResult result = use(house, "run", {{"code", "plot()"}});
    const std::string text = textOf(result);
    INFO(text);
    std::size_t images = 0;
    for (const Json& part : result.content) images += part["type"] == "image" ? 1 : 0;
    CHECK(images == kImagesCap);
    CHECK(result.content[1]["data"] == png);
    CHECK(result.content[1]["mimeType"] == "image/png");
    CHECK(text.find("--- result ---\n{'k': 1}") != std::string::npos);
    CHECK(text.find("a b") != std::string::npos);
    CHECK(text.find("<table>") == std::string::npos);
    CHECK(text.find("<i>only</i>") != std::string::npos);
    CHECK(text.find("2 result(s) of type image/png") != std::string::npos);
    CHECK(text.find("1 result(s) of type image/jpeg") != std::string::npos);
    // Some clients show a model only the structured content if there is any.
    CHECK_FALSE(result.message().contains("structuredContent"));
}

TEST_CASE("a tool result of any size stays within the limit for a model", "[unit][mcp]") {
    House house;
    house.executions.behave = [&](const auto&, const auto& execution) {
        for (int i = 0; i < 30; ++i) {
            execution->showAll({{"text/plain", std::string(20'000, 'r')}}, i == 29);
        }
        execution->print(std::string(50'000, 'o'));
        execution->end("ok", 0);
    };
    const ToolResult result = use(house, "run", {{"code", "1"}});
    CHECK(textOf(result).size() < kTextCap + 1'000);
}

TEST_CASE("workspace_open gives the id first", "[unit][mcp]") {
    House house;
    CHECK(isId(openIn(house), "ws_"));
}

TEST_CASE("a service error tells the model what to do next", "[unit][mcp]") {
    House house;
    Error exhausted(ErrorCode::PoolExhausted, "pool python has no free sandbox");
    exhausted.hint("Close a workspace").retryAfter(std::chrono::seconds(3));
    house.workspaces.refuse_create = exhausted;
    const ToolResult result = use(house, "workspace_open", Json::object());
    CHECK(result.is_error);
    CHECK(textOf(result) ==
          "Error POOL_EXHAUSTED: pool python has no free sandbox.\nClose a workspace\n"
          "Try again after 3 s.");
}

TEST_CASE("the error for an unknown id names the tool to use next", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    const std::string none = "ws_" + std::string(32, '0');
    CHECK(textOf(use(house, "file_get", {{"workspace_id", none}, {"path", "."}})) ==
          "Error NOT_FOUND: no workspace " + none +
              ".\nworkspace_list shows your workspaces, and workspace_open opens a new one.");
    CHECK(textOf(use(house, "run_status", {{"run_id", "ex_none"}})) ==
          "Error NOT_FOUND: no execution ex_none.\n"
          "Take the run_id from the result of run or packages.");
    CHECK(textOf(use(house, "file_get", {{"workspace_id", id}, {"path", "none"}})) ==
          "Error NOT_FOUND: none: no such file.\n"
          "file_get with path \".\" lists the workspace's files.");
    CHECK(withNextStep(Error(ErrorCode::NotFound, "no context cx_1")).hint() ==
          "run makes a context when its name is used for the first time.");
    Error hinted(ErrorCode::NotFound, "no workspace ws_1");
    hinted.hint("look again");
    CHECK(withNextStep(hinted).hint() == "look again");
    // Tools of other names are not sent to Hearth's.
    const Toolbox other(house.services, fileTools(house.services));
    const ToolOutcome outcome =
        other.call(*other.find("file_get"), callOf(house), {{"workspace_id", none}, {"path", "."}});
    CHECK(textOf(std::get<ToolResult>(outcome)) == "Error NOT_FOUND: no workspace " + none + ".");
}

TEST_CASE("closing a workspace twice is no error", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    CHECK_FALSE(use(house, "workspace_close", {{"workspace_id", id}}).is_error);
    CHECK_FALSE(use(house, "workspace_close", {{"workspace_id", id}}).is_error);
    const ToolResult gone = use(house, "file_get", {{"workspace_id", id}, {"path", "."}});
    CHECK(gone.is_error);
    CHECK(textOf(gone).find("workspace_open") != std::string::npos);
}

TEST_CASE("workspace_extend refuses to shorten a life", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    CHECK(use(house, "workspace_extend", {{"workspace_id", id}, {"ttl_s", 1}}).is_error);
    CHECK_FALSE(use(house, "workspace_extend", {{"workspace_id", id}}).is_error);
}

TEST_CASE("a workspace's deadlines have the same bounds as in REST", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    for (const char* name : {"idle_s", "ttl_s"}) {
        const ToolResult far =
            use(house, "workspace_extend", {{"workspace_id", id}, {name, 2'592'001}});
        CHECK(far.is_error);
        CHECK(textOf(far).find("at most 2592000") != std::string::npos);
        CHECK(use(house, "workspace_open", {{name, 2'592'001}}).is_error);
        CHECK_FALSE(use(house, "workspace_open", {{name, 2'592'000}}).is_error);
    }
}

TEST_CASE("a run with packages reports the outcome of each", "[unit][mcp]") {
    House house;
    use(house, "run", {{"code", "1"}, {"packages", {"numpy", "six"}}, {"auto_packages", true}});
    CHECK(house.executions.request.packages == std::vector<std::string>{"numpy", "six"});
    CHECK(house.executions.request.auto_packages);
    controller::ExecutionView view;
    view.status = controller::ExecutionStatus::Ok;
    view.packages.emplace();
    view.packages->installed = {{"numpy", "2.1"}, {"six", "1.0"}};
    view.packages->not_installed = {{"x", "no distribution is known for import x"}};
    const std::string text = textOf(runResult(view));
    CHECK(text.find("\nPackages: numpy 2.1, six 1.0\n") != std::string::npos);
    CHECK(text.find("Not found: no distribution is known for import x.") != std::string::npos);
}

TEST_CASE("a run shows status, stdout and stderr compactly", "[unit][mcp]") {
    House house;
    house.executions.behave = [](const auto&, const auto& execution) {
        execution->print("one\n", "two\n");
        execution->end("failed", 3);
    };
    const ToolResult result = use(house, "run", {{"command", "x"}, {"timeout_s", 1.5}});
    CHECK_FALSE(result.is_error);
    const std::string text = textOf(result);
    CHECK(text.starts_with("failed, exit 3, 3.5 ms; run_id ex_"));
    CHECK(text.ends_with("\n--- stdout ---\none\n--- stderr ---\ntwo"));
    CHECK(house.executions.request.timeout == std::chrono::milliseconds(1500));
}

TEST_CASE("a long output is cut in the middle and run_status gives the rest", "[unit][mcp]") {
    House house;
    const std::string line = "grüße, 世界\n";
    std::string output;
    while (output.size() < 100'000) output += line;
    house.executions.behave = [&](const auto&, const auto& execution) {
        execution->print(output);
        execution->end("ok", 0);
    };
    const std::string text = textOf(use(house, "run", {{"command", "x"}}));
    CHECK(text.size() <= kTextCap + 200);
    CHECK(isUtf8(text));
    CHECK(text.find("\xEF\xBF\xBD") == std::string::npos);
    const std::string id = house.executions.newest()->id();
    std::string rest;
    std::uint64_t since = 0;
    for (int page = 0; page < 10 && rest.size() < output.size(); ++page) {
        const std::string part =
            textOf(use(house, "run_status", {{"run_id", id}, {"since", since}}));
        REQUIRE(part.size() <= kTextCap + 200);
        const std::size_t begin = part.find("--- stdout ---\n");
        REQUIRE(begin != std::string::npos);
        rest += part.substr(begin + 15);
        since = rest.size();
    }
    CHECK(rest == output);
}

TEST_CASE("output that is not UTF-8 becomes valid text", "[unit][mcp]") {
    House house;
    house.executions.behave = [](const auto&, const auto& execution) {
        execution->print("\xFF\xFE ok");
        execution->end("ok", 0);
    };
    CHECK(isUtf8(textOf(use(house, "run", {{"command", "x"}}))));
}

TEST_CASE("a repeated key is sent with a fingerprint of the arguments", "[unit][mcp]") {
    House house;
    use(house, "run", {{"command", "x"}, {"idempotency_key", "k"}});
    const std::string first = house.executions.request.fingerprint;
    use(house, "run", {{"command", "y"}, {"idempotency_key", "k"}});
    CHECK(first.size() == 64);
    CHECK(first != house.executions.request.fingerprint);
}

TEST_CASE("file_get shows text, pictures, binaries and directories each in its way",
          "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    const std::string png = std::string("\x89PNG\r\n\x1a\n\0data", 13);
    const auto put = [&](const std::string& path, const std::string& bytes) {
        CHECK_FALSE(use(house, "file_put",
                        {{"workspace_id", id}, {"path", path}, {"base64", base64Encode(bytes)}})
                        .is_error);
    };
    const auto get = [&](const std::string& path, Json more = Json::object()) {
        more["workspace_id"] = id;
        more["path"] = path;
        return use(house, "file_get", more);
    };
    put("a.txt", "hello");
    put("b.png", png);
    put("c.bin", std::string("\0\x01", 2));
    put("d.bin", std::string(200'000, '\0'));
    put("e.txt", std::string(50'000, 'x'));
    put("empty", "");
    CHECK(textOf(get("a.txt")) == "hello");
    CHECK(textOf(get("a.txt", {{"offset", 1}, {"length", 3}})) ==
          "bytes 1 to 4 of 5; more: offset=4ell");
    const Json picture = get("b.png").content.front();
    CHECK(picture["type"] == "image");
    CHECK(picture["mimeType"] == "image/png");
    CHECK(picture["data"] == base64Encode(png));
    CHECK(get("c.bin").content.back()["resource"]["blob"] == base64Encode({"\0\x01", 2}));
    const std::string large = textOf(get("d.bin"));
    CHECK(large.find("too large to show") != std::string::npos);
    CHECK(large.find("with save_to if this tool has it here, else over REST: GET /v1/") !=
          std::string::npos);
    CHECK(textOf(get("e.txt")).find("more: offset=") != std::string::npos);
    CHECK(textOf(get("e.txt")).size() <= kTextCap);
    CHECK_FALSE(get("empty").is_error);
    CHECK(textOf(get("a.txt", {{"encoding", "base64"}})).ends_with(base64Encode("hello")));
    const std::string list = textOf(get(".", {{"max_entries", 2}}));
    CHECK(list.find("a.txt  5 bytes") != std::string::npos);
    CHECK(list.find("after=\"b.png\"") != std::string::npos);
    CHECK(get("nope").is_error);
    CHECK(get("a.txt", {{"offset", 9}}).is_error);
}

TEST_CASE("packages waits without a worker, then reports the outcome or that it still runs",
          "[unit][mcp]") {
    House house;
    house.workspaces.network = egress::NetworkMode::Mirror;
    house.executions.behave = [](const auto&, const auto&) {};
    const std::string id = openIn(house);
    const Toolbox tools(house.services, nativeTools(house.services));
    const Json arguments = {{"workspace_id", id}, {"install", {"six"}}, {"wait_s", 60}};
    const Tool& packages = *tools.find("packages");
    const CallContext call = callOf(house);
    ToolOutcome outcome = tools.call(packages, call, arguments);
    auto& work = std::get<Task<ToolResult>>(outcome);
    REQUIRE_FALSE(work.run());
    const TimePoint late = house.clock.now() + std::chrono::minutes(1);
    CHECK_FALSE(work.wait()->ready());
    CHECK(work.wait()->until() <= late);
    const auto execution = house.executions.at(call.call->execution()->id());
    execution->print(R"({"packages": {"six": {"state": "installed", "version": "1.17"}}})");
    execution->end("ok", 0);
    CHECK(work.wait()->ready());
    REQUIRE(work.run());
    CHECK(textOf(work.result()) == "six: installed 1.17");

    const CallContext early = callOf(house);
    CHECK(textOf(resultNow(early, tools.call(packages, early, arguments))).find("Still running") !=
          std::string::npos);
    early.call->cancel();
    early.call->leftover()();
    CHECK(early.call->execution()->finished());
    CHECK_FALSE(early.call->leftover());
}

TEST_CASE("an invalid file mode is refused with a message", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    for (const char* bad : {"", "8", "0x1f", "77777", "rwx"}) {
        const ToolResult result = use(
            house, "file_put", {{"workspace_id", id}, {"path", "f"}, {"text", "x"}, {"mode", bad}});
        CHECK(result.is_error);
        CHECK(textOf(result).find("mode") != std::string::npos);
    }
}

TEST_CASE("a long resource says where the rest is, and a picture is never cut", "[unit][mcp]") {
    House house;
    const std::string id = openIn(house);
    std::string text;
    while (text.size() < 150'000) text += "h\xC3\xA9llo\n";
    const auto put = [&](const std::string& path, const std::string& bytes) {
        std::size_t taken = 0;
        house.workspaces.writeFile(callOf(house).who, id, path, std::nullopt,
                                   [&](char* out, std::size_t size) {
                                       const std::size_t n = bytes.copy(out, size, taken);
                                       taken += n;
                                       return n;
                                   });
    };
    put("long.txt", text);
    put("short.txt", "all of it");
    put("large.bin", std::string(WorkspaceResources::kFileCap + 1, '\0'));
    put("small.bin", std::string(10, '\0'));
    const WorkspaceResources resources(house.services);
    const auto read = [&](const std::string& path) {
        return *resources.read(callOf(house), "workspace://" + id + "/files/" + path);
    };
    const Json cut = read("long.txt");
    REQUIRE(cut.size() == 2);
    CHECK(isUtf8(cut[0]["text"].get<std::string>()));
    CHECK(text.starts_with(cut[0]["text"].get<std::string>()));
    CHECK(cut[1]["text"].get<std::string>().find("of " + std::to_string(text.size()) + " bytes") !=
          std::string::npos);
    CHECK(read("short.txt")[0]["text"] == "all of it");
    CHECK(read("large.bin")[0].contains("text"));
    CHECK(read("small.bin")[0].contains("blob"));
}

}  // namespace hearth::mcp
