#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/cli/Cli.h"
#include "api/cli/commands/Commands.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RunOutput.h"
#include "api/cli/remote/RunRequest.h"
#include "api/cli/remote/SavedFiles.h"
#include "api/cli/remote/Tables.h"
#include "api/command/Yaml.h"
#include "base/Fd.h"
#include "base/Version.h"
#include "tests/support/Support.h"
#include "tests/unit/api/cli/Call.h"

using namespace hearth;
using namespace hearth::cli;
using hearth::test::call;
using hearth::test::Outcome;

namespace {

Options options(const std::vector<std::string>& arguments) {
    return Options::parse(makeRun().spec, arguments,
                          [](const std::string&) { return std::nullopt; });
}

RunRequest request(const std::vector<std::string>& arguments) {
    return makeRunRequest(options(arguments));
}

}  // namespace

TEST_CASE("output goes to the stream it came from, byte for byte", "[unit][cli]") {
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err};
    RunOutput output(console, false);
    output.take({"1", "started", R"({"id":"ex_1"})"});
    output.take({"2", "stdout", R"({"text":"a"})"});
    output.take({"3", "stderr", R"({"text":"b"})"});
    output.take({"4", "stdout", R"({"base64":"/wA="})"});
    CHECK_FALSE(output.finished());
    output.take({"5", "exit", R"({"id":"ex_1","status":"failed","exitCode":3})"});
    CHECK(output.finished());
    CHECK(output.executionId() == "ex_1");
    CHECK(out.str() == std::string("a\xff\0", 3));
    CHECK(err.str() == "b");
    CHECK(output.exitStatus() == 3);
}

TEST_CASE("lost output is counted, reported and sets the exit status", "[unit][cli]") {
    for (const auto& [end, status] : {std::pair(R"("ok","exitCode":0)", kIncomplete),
                                      std::pair(R"("failed","exitCode":3)", 3)}) {
        std::ostringstream out;
        std::ostringstream err;
        const Console console{out, err};
        RunOutput output(console, false);
        output.take({"1", "stdout", R"({"text":"a"})"});
        output.take({"9", "stdout", R"({"text":"b","droppedBytes":7})"});
        output.take({"20", "stderr", R"({"text":"c","droppedBytes":10})"});
        // The number of bytes that the server dropped is a different one.
        const std::string exit = std::string(R"({"id":"e","droppedBytes":1000,"status":)") + end;
        output.take({"21", "exit", exit + "}"});
        CHECK(output.lostBytes() == 17);
        CHECK(err.str().find("hearth: 17 bytes of output were lost") != std::string::npos);
        CHECK(output.exitStatus() == status);
    }
    std::ostringstream out;
    const Console console{out, out};
    RunOutput whole(console, false);
    whole.take({"21", "exit", R"({"id":"e","status":"ok","exitCode":0,"droppedBytes":1000})"});
    CHECK(whole.exitStatus() == kOk);
    RunOutput document(console, true);
    document.take({"21", "exit", R"({"id":"e","status":"ok","exitCode":0,"droppedBytes":1000})"});
    CHECK(document.exitStatus() == kIncomplete);
}

TEST_CASE("an execution's status becomes the exit status of the command", "[unit][cli]") {
    CHECK(exitStatusOf({{"status", "ok"}, {"exitCode", 0}}) == 0);
    CHECK(exitStatusOf({{"status", "failed"}, {"exitCode", 7}}) == 7);
    CHECK(exitStatusOf({{"status", "failed"}, {"exitCode", nullptr}, {"signal", "SEGV"}}) == 139);
    CHECK(exitStatusOf({{"status", "timeout"}, {"signal", "KILL"}}) == 124);
    CHECK(exitStatusOf({{"status", "oom"}, {"signal", "KILL"}}) == 137);
    CHECK(exitStatusOf({{"status", "killed"}}) == 137);
    CHECK(exitStatusOf({{"status", "lost"}, {"exitCode", nullptr}}) == 1);
}

TEST_CASE("the traceback of an exception is shown if stderr lacks it", "[unit][cli]") {
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err};
    RunOutput output(console, false);
    output.take({"1", "exit",
                 R"({"id":"e","status":"failed","exitCode":1,
                     "error":{"name":"ValueError","message":"no","traceback":"Traceback: no"}})"});
    CHECK(err.str() == "Traceback: no\n");
}

TEST_CASE("displayed text is printed, and the value of a last expression as a REPL does",
          "[unit][cli]") {
    const std::string exit =
        R"({"id":"e","status":"ok","exitCode":0,"results":[)"
        R"({"main":false,"mime":{"text/plain":"<Figure>","image/png":"aGk="}},)"
        R"({"main":false,"mime":{"text/plain":"displayed"}},)"
        R"({"main":true,"mime":{"text/plain":"42"}}]})";
    for (const bool shows : {true, false}) {
        std::ostringstream out;
        std::ostringstream err;
        const Console console{out, err};
        RunOutput output(console, false, shows);
        output.take({"1", "stdout", R"({"text":"no line end"})"});
        output.take({"2", "exit", exit});
        CHECK(out.str() == std::string("no line end\ndisplayed\n") + (shows ? "42\n" : ""));
    }
}

TEST_CASE("run --context requests the context by name before the execution", "[unit][cli]") {
    const RunRequest named =
        request({"-w", "ws_1", "--context", "main", "-l", "python", "-c", "x"});
    CHECK(named.context_target == "/v1/workspaces/ws_1/contexts");
    CHECK(named.context == Json({{"name", "main"}, {"language", "python"}}));
    CHECK(named.shows_value);
    CHECK(request({"-c", "1"}).context.is_null());
    CHECK_THROWS_AS(request({"--context", "main", "-c", "x"}), UsageError);
    CHECK_THROWS_AS(request({"-w", "ws_1", "--context", "main", "--command", "ls"}), UsageError);
    CHECK_THROWS_AS(request({"-w", "ws_1", "--context", "m", "-c", "x", "-e", "A=b"}), UsageError);
}

TEST_CASE("run takes code, a command or an argument vector", "[unit][cli]") {
    const RunRequest code =
        request({"-l", "python", "-c", "print(1)", "-e", "A=b=c", "-t", "1500ms"});
    CHECK(code.target == "/v1/executions");
    CHECK(code.body["code"] == "print(1)");
    CHECK(code.body["language"] == "python");
    CHECK(code.body["env"]["A"] == "b=c");
    CHECK(code.body["timeoutSeconds"] == 1.5);
    CHECK(request({"--command", "echo hi | wc -c"}).body["command"] == "echo hi | wc -c");
    CHECK(request({"--", "ls", "-l"}).body["argv"] == Json({"ls", "-l"}));
    CHECK(request({"-w", "ws_1", "--command", "ls"}).target == "/v1/workspaces/ws_1/executions");
    CHECK(request({"-i", "--command", "cat"}).body["stdinOpen"] == true);
    CHECK(request({"-p", "gpu", "--command", "ls"}).body["pool"] == "gpu");
    CHECK(request({"--image", "python:3", "--command", "ls"}).body["image"] == "python:3");
}

TEST_CASE("a detached or interactive execution has a time limit of a day", "[unit][cli]") {
    CHECK_FALSE(request({"-c", "1"}).body.contains("timeoutSeconds"));
    CHECK(request({"-d", "-c", "1"}).body["timeoutSeconds"] == 86'400);
    CHECK(request({"-it", "-c", "1"}).body["timeoutSeconds"] == 86'400);
    CHECK(request({"-d", "-t", "5", "-c", "1"}).body["timeoutSeconds"] == 5.0);
}

TEST_CASE("output is paced unless the execution is detached or the output limit is small",
          "[unit][cli]") {
    CHECK(request({"-c", "1"}).body["paced"] == true);
    CHECK(request({"--output-limit", "1Mi", "-c", "1"}).body["paced"] == true);
    CHECK_FALSE(request({"--output-limit", "512Ki", "-c", "1"}).body.contains("paced"));
    CHECK_FALSE(request({"-d", "-c", "1"}).body.contains("paced"));
}

TEST_CASE("a folder for results is checked before the execution starts", "[unit][cli]") {
    const test::TempDir dir;
    std::ofstream(dir.file("taken")) << "x";
    for (const char* flag : {"--out", "--save-results"}) {
        CHECK_THROWS_AS(request({flag, dir.file("taken"), "-c", "1"}), UsageError);
        CHECK_THROWS_AS(request({flag, "", "-c", "1"}), UsageError);
        CHECK_NOTHROW(request({flag, dir.file("new/folder"), "-c", "1"}));
    }
}

TEST_CASE("figures have their own numbers, and are announced if they are not saved",
          "[unit][cli]") {
    const test::TempDir dir;
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err};
    const Json execution = {{"results",
                             {{{"mime", {{"text/plain", "[<Line2D>]"}}}},
                              {{"mime", {{"text/plain", "<F>"}, {"image/png", "iVBORw=="}}}}}}};
    announceResults(execution, console);
    CHECK(err.str().find("1 figure is not shown here; --save-results DIR") != std::string::npos);
    saveResults(execution, dir.file("figures"), console);
    CHECK(std::filesystem::exists(dir.file("figures/result-1.png")));
    err.str("");
    announceResults({{"results", {{{"mime", {{"text/plain", "1"}}}}}}}, console);
    CHECK(err.str().empty());
}

TEST_CASE("flags of every client may stand before the command", "[unit][cli]") {
    const auto early = call({"--url", "nowhere", "get", "pools"});
    CHECK(early.err.find("write http://HOST:PORT") != std::string::npos);
    CHECK(call({"--bogus", "get", "pools"}).err.find("hearth COMMAND --bogus") !=
          std::string::npos);
}

TEST_CASE("run reads the limits of a sandbox with units", "[unit][cli]") {
    const Json limits =
        request({"--cpu", "500m", "--memory", "64Mi", "--pids", "32", "--command", "ls"})
            .body["limits"];
    CHECK(limits == Json({{"cpu", 0.5}, {"memoryBytes", 64 << 20}, {"pids", 32}}));
    CHECK(request({"--cpu", "0.29", "-c", "1"}).body["limits"] == Json({{"cpu", 0.29}}));
    CHECK(request({"--memory", "64m", "-c", "1"}).body["limits"]["memoryBytes"] == 64 << 20);
    CHECK(request({"--output-limit", "16m", "-c", "1"}).body["outputLimitBytes"] == 16 << 20);
    CHECK_FALSE(request({"-c", "1"}).body.contains("limits"));
    CHECK_THROWS_AS(request({"--cpu", "half", "-c", "1"}), UsageError);
    CHECK_THROWS_AS(request({"--memory", "64Q", "-c", "1"}), UsageError);
    CHECK_THROWS_AS(request({"--pids", "many", "-c", "1"}), UsageError);
    CHECK_THROWS_AS(request({"-w", "ws_1", "--pids", "32", "-c", "1"}), UsageError);
    for (const char* command : {"run", "open"}) {
        CHECK(call({command, "--help"}).out.find("--memory SIZE") != std::string::npos);
    }
}

TEST_CASE("a script gets the words after it as arguments, and its files are sent along",
          "[unit][cli]") {
    const test::TempDir dir;
    const std::string script = dir.file("a.py");
    std::ofstream(script) << "print(1)";
    std::ofstream(dir.file("data.csv")) << "x,y";
    const Json body =
        request({"--file", dir.file("data.csv"), "--out", "o", script, "x", "y", "--", "-v"}).body;
    CHECK(body["argv"] == Json({"python3", "a.py", "x", "y", "-v"}));
    CHECK(body["files"] == Json::array({{{"path", "a.py"}, {"text", "print(1)"}},
                                        {{"path", "data.csv"}, {"text", "x,y"}}}));
    CHECK(body["collect"] == Json({"**"}));
    std::ofstream(dir.file("script")) << "print(1)";
    for (const char* language : {"python", "py"}) {
        CHECK(request({"-l", language, dir.file("script"), "x"}).body["argv"] ==
              Json({"python3", "script", "x"}));
    }
    const RunRequest there = request({"-w", "ws_1", "--file", dir.file("data.csv"), "-c", "1"});
    REQUIRE(there.uploads.size() == 1);
    CHECK(there.uploads[0].first == "/v1/workspaces/ws_1/files/data.csv");
    CHECK(request({"-d", "-c", "1"}).body["background"] == true);
    CHECK(request({"-t", "1", "-c", "1"}).body["timeoutSeconds"] == 1.0);
    CHECK_THROWS_AS(request({"-d", "-i", "-c", "1"}), UsageError);
    CHECK_THROWS_AS(request({"-d", "--out", "o", "-c", "1"}), UsageError);
}

TEST_CASE("exec reads its flags before the program and passes the rest to it", "[unit][cli]") {
    const auto exec = [](const std::vector<std::string>& arguments) {
        const Options options = Options::parse(makeExec().spec, arguments,
                                               [](const std::string&) { return std::nullopt; });
        return makeExecRequest(options, [](const std::string& word) { return "ws_" + word; });
    };
    const RunRequest made = exec({"-e", "A=b", "mine", "ls", "-e", "--", "-l"});
    CHECK(made.target == "/v1/workspaces/ws_mine/executions");
    CHECK(made.body["argv"] == Json({"ls", "-e", "--", "-l"}));
    CHECK(made.body["env"] == Json({{"A", "b"}}));
    CHECK(exec({"mine", "--", "ls", "-l"}).body["argv"] == Json({"ls", "-l"}));
    CHECK(exec({"mine", "-i", "cat"}).body["stdinOpen"] == true);
    CHECK_THROWS_AS(exec({"mine"}), UsageError);
    CHECK(Options::parse(makeExec().spec, {"-it", "mine", "bash"}, [](const std::string&) {
              return std::nullopt;
          }).on("tty"));
}

TEST_CASE("run names the packages that must be there", "[unit][cli]") {
    const Json body = request({"--packages", "a>=1, <2", "--packages", "b", "-c", "1"}).body;
    CHECK(body["packages"] == Json({"a>=1, <2", "b"}));
    CHECK_FALSE(body.contains("autoPackages"));
    CHECK(request({"--auto-packages", "-c", "1"}).body["autoPackages"] == true);
    CHECK_FALSE(request({"-c", "1"}).body.contains("packages"));
    CHECK_THROWS_AS(request({"--auto-packages", "--command", "ls"}), UsageError);
}

TEST_CASE("run refuses a call without code, with two programs or with wrong flags", "[unit][cli]") {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{},
                                               {"-c", "1", "--command", "ls"},
                                               {"-c", "1", "--", "ls"},
                                               {"-l", "python", "--command", "ls"},
                                               {"-c", "1", "-e", "novalue"},
                                               {"-c", "1", "-w", "ws_1", "-p", "python"},
                                               {"-i", "-"}}) {
        CHECK_THROWS_AS(request(wrong), UsageError);
    }
}

TEST_CASE("the file's extension chooses the language", "[unit][cli]") {
    CHECK(languageOf("a/b.py") == "python");
    CHECK(languageOf("x.js") == "node");
    CHECK(languageOf("main.go") == "go");
    CHECK(languageOf("main.R") == "r");
    CHECK(languageOf("x.unknown").empty());
}

TEST_CASE("problem details become one message and one hint", "[unit][cli]") {
    const RemoteError error = remoteError(
        429, R"({"title":"No warm sandbox free","status":429,"detail":"pool python: queue full",
                 "errorCode":"POOL_EXHAUSTED","retryAfterSeconds":3,"hint":"raise warm.max",
                 "errors":[{"pointer":"/pool","reason":"empty"}]})");
    CHECK(std::string(error.what()) == "pool python: queue full; --pool: empty");
    CHECK(error.hint() == "raise warm.max; try again in 3 s");
    const RemoteError once =
        remoteError(400, R"({"detail":"the body is not valid: /pids must be 8 or more",
                 "errors":[{"pointer":"/pids","reason":"must be 8 or more"}]})");
    CHECK(std::string(once.what()) == "the body is not valid: /pids must be 8 or more");
    CHECK(remoteError(500, R"({"requestId":"req_1"})").hint().find("req_1") != std::string::npos);
    CHECK(remoteError(503, R"({"requestId":"req_1"})").hint().empty());  // no log has it
    CHECK(error.code() == "POOL_EXHAUSTED");
    CHECK(std::string(remoteError(502, "<html>").what()) == "the server answered with status 502");
    CHECK(remoteError(401, R"({"hint":"Send a header"})").hint().find("HEARTH_TOKEN") !=
          std::string::npos);
}

TEST_CASE("an invalid value is a usage error, and any other refusal is a failure", "[unit][cli]") {
    const auto statusFor = [](int status, const std::string& code) {
        return exitStatusOf(remoteError(status, R"({"errorCode":")" + code + "\"}"));
    };
    CHECK(statusFor(400, "INVALID_ARGUMENT") == kUsage);
    CHECK(statusFor(404, "NOT_FOUND") == kNotFound);
    CHECK(statusFor(410, "GONE") == kNotFound);
    CHECK(statusFor(422, "INVALID_SPEC") == kFailure);
    CHECK(statusFor(429, "POOL_EXHAUSTED") == kFailure);
    CHECK(exitStatusOf(remoteError(400, "<html>")) == kFailure);  // perhaps a proxy's page
}

TEST_CASE("wrong calls exit with 2, say why and suggest", "[unit][cli]") {
    const Outcome outcome = call({"rnu"});
    CHECK(outcome.status == kUsage);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == "error: unknown command \"rnu\"\n  hint: did you mean `hearth run`?\n");
    CHECK(call({"claim"}).err == "error: unknown command \"claim\"\n  hint: type `hearth open`\n");
    CHECK(call({"tokens"}).err.ends_with("hint: type `hearth token list`\n"));
    CHECK(call({"list"}).err.find("`hearth ls`") != std::string::npos);
    CHECK(call({"pols"}).err.find("`hearth get pools`") != std::string::npos);
    CHECK(call({"xyzzy"}).err.find("`hearth help`") != std::string::npos);
    CHECK(call({"get", "workspcaes"}).err.find("did you mean workspaces?") != std::string::npos);
    CHECK(call({"get", "executions"}).err.find("--workspace") != std::string::npos);
    CHECK(call({"delete", "files", "x"}).status == kUsage);
    CHECK(call({}).status == kUsage);
}

TEST_CASE("each problem of a manifest is printed once, on its own line", "[unit][cli]") {
    std::string file = "/tmp/hearth-unit-XXXXXX";
    const Fd made(::mkstemp(file.data()));
    std::ofstream(file) << "apiVersion: hearth.dev/v1alpha1\nkind: SandboxPool\n"
                           "metadata: {name: x}\nspec:\n  template: {image: x}\n"
                           "  wram: {}\n  warm:\n    mni: 1\n";
    const Outcome outcome = call({"apply", "-f", file});
    ::unlink(file.c_str());
    CHECK(outcome.status == kUsage);
    CAPTURE(outcome.err);
    CHECK(std::ranges::count(outcome.err, '\n') == 2);
    CHECK(outcome.err.find("error: " + file + ":8: /spec/warm/mni unknown field") !=
          std::string::npos);
    CHECK(outcome.err.find("\nerror: " + file + ":6: /spec/wram unknown field") !=
          std::string::npos);
    CHECK(outcome.err.find('?') == std::string::npos);
}

TEST_CASE("the first token must be an admin's", "[unit][cli]") {
    const test::TempDir dir;
    std::filesystem::create_directory(dir.file("state"));
    const std::string at = "--data-dir=" + dir.path();
    const Outcome refused = call({"token", "create", "--offline", at});
    CHECK(refused.status == kFailure);
    CHECK(refused.err.find("--role admin") != std::string::npos);
    const Outcome made = call({"token", "create", "--offline", "--role", "admin", at});
    CHECK(made.status == kOk);
    CHECK(made.out.starts_with("hearth_"));
    CHECK(made.err.find("next start") != std::string::npos);
}

TEST_CASE("every command has a page of help", "[unit][cli]") {
    for (const Command& command : allCommands()) {
        CAPTURE(command.spec.name);
        const Outcome page = call({command.spec.name, "--help"});
        CHECK(page.status == kOk);
        CHECK(page.out.starts_with("usage: hearth " + command.spec.name));
        CHECK(page.out == call({"help", command.spec.name}).out);
    }
    CHECK(call({"help"}).out.find("\n  version ") != std::string::npos);
    CHECK(call({"version"}).out == call({"--version"}).out);
    CHECK(call({"--version"}).out == std::string("hearth ") + kHearthVersion + "\n");
}

TEST_CASE("an unreachable server exits with 4", "[unit][cli]") {
    const Outcome outcome = call({"get", "pools", "--url", "unix:///nonexistent/hearth.sock"});
    CHECK(outcome.status == kUnreachable);
    CHECK(outcome.err.find("hint:") != std::string::npos);
}

TEST_CASE("serve looks at its configuration first", "[unit][cli]") {
    CHECK(call({"serve", "--listen=7"}).status == kUsage);
    CHECK(call({"serve", "--data-dir=/proc/version"}).err.find("is not a directory") !=
          std::string::npos);
    CHECK(call({"config", "--listen=127.0.0.1:7"}).out.find("127.0.0.1:7") != std::string::npos);
}

TEST_CASE("tables are aligned and show no control characters", "[unit][cli]") {
    Table table({"NAME", "N"});
    table.align({Table::Align::Left, Table::Align::Right});
    table.add({"a\x1b[31m\n", "7"});
    table.add({"größer", "1234"});
    table.add({""});
    CHECK(table.text() ==
          "NAME        N\n"
          "a?[31m?     7\n"
          "größer   1234\n"
          "-           -\n");
    CHECK(printable("a\xc2\x9b"
                    "b") == "a?b");
    CHECK(printable("a\xe2\x80\xaegpj.exe\xe2\x80\xac \xe2\x81\xa6x\xe2\x81\xa9 "
                    "\xe2\x80\xa9\xe2\x82\xac") == "a?gpj.exe? ?x? ?\xe2\x82\xac");
    // Soft hyphen, no-width space and joiner, breaks, a variation, BOM, a tag, private use,
    // fillers.
    for (const char* unseen :
         {"\u00ad", "\u034f", "\u061c",     "\u115f",     "\u180e",     "\u200b",
          "\u200d", "\u200e", "\u2028",     "\u2029",     "\u2060",     "\u2064",
          "\u206a", "\u2800", "\u3164",     "\ue000",     "\ufe0f",     "\ufeff",
          "\uffa0", "\ufff9", "\U000E0041", "\U000E0100", "\U000F0000", "\U0010FFFD"}) {
        CHECK(printable("a" + std::string(unseen) + "b") == "a?b");
        const std::string shown = jsonText(Json(std::string("a") + unseen));
        CHECK(std::ranges::all_of(shown, [](char c) { return c >= 0x20 && c < 0x7f; }));
        CHECK(parseJson(shown) == Json(std::string("a") + unseen));
    }
    for (const char* seen :
         {"e\u0301", "größer", "日本", "\U0001F600", "\u00a0", "\u20ac", "\ufffd"}) {
        CHECK(printable(seen) == seen);
        CHECK(jsonText(Json(seen)) == "\"" + std::string(seen) + "\"");
    }
    CHECK(printable("a\xff") == "a\xef\xbf\xbd");
}

TEST_CASE("JSON output escapes control characters", "[unit][cli]") {
    const Json value{{"name",
                      "a\n\x1b\x7f\xc2\x9b"
                      "31m\xe2\x80\xaegpj \xe2\x81\xa9 größer"}};
    const std::string text = jsonText(value);
    CHECK(text == "{\n  \"name\": \"a\\n\\u001b\\u007f\\u009b31m\\u202egpj \\u2069 größer\"\n}");
    CHECK(parseJson(text) == value);
    CHECK(jsonText(value, -1).find('\n') == std::string::npos);
}

TEST_CASE("texts of several lines are shown as blocks without control characters", "[unit][cli]") {
    const std::string text =
        fieldList({{"id", "ex_1"}, {"stdout", "a\n\x1b[31mb\n"}, {"stderr", "one\n"}});
    CHECK(text == "FIELD   VALUE\nid      ex_1\nstderr  one\n\nstdout:\na\n?[31mb\n");
}

TEST_CASE("figures are saved by number, beside other forms of a result", "[unit][cli]") {
    const test::TempDir dir;
    std::ostringstream out;
    std::ostringstream err;
    const Json execution = {
        {"results",
         Json::array({{{"mime", {{"text/plain", "42"}}}},
                      {{"mime", {{"image/png", "iVBORw=="}, {"text/plain", "<Figure>"}}}},
                      {{"mime", {{"image/svg+xml", "<svg/>"}}}},
                      {{"mime", {{"image/png", "no base64!"}}}}})}};
    saveResults(execution, dir.file("a/b"), Console{out, err});
    const auto bytes = [&](const char* name) {
        std::ifstream in(dir.file("a/b/") + name);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    CHECK(bytes("result-1.png") == "\x89PNG");
    CHECK(bytes("result-2.svg") == "<svg/>");
    CHECK(std::ranges::count(err.str(), '\n') == 2);
}

TEST_CASE("a list filter that a kind does not support is refused", "[unit][cli]") {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{"pools", "--pool", "a"},
                                               {"pools", "-l", "a=b"},
                                               {"pools", "-w", "ws_1"},
                                               {"sandboxes", "--tenant", "t"},
                                               {"executions", "-w", "ws_1", "--pool", "a"},
                                               {"workspaces", "--resource", "ws_1"},
                                               {"capabilities", "--pool", "a"},
                                               {"workspace", "ws_1", "-l", "a=b"},
                                               {"pools", "--follow"},
                                               {"events", "--watch"},
                                               {"workspace", "ws_1", "--watch"},
                                               {"workspaces", "-o", "xml"}}) {
        std::vector<std::string> words{"get"};
        words.insert(words.end(), wrong.begin(), wrong.end());
        CAPTURE(wrong);
        CHECK(call(words).status == kUsage);
    }
}

TEST_CASE("a workspace is found by its id, a part of the id, or its name", "[unit][cli]") {
    const std::vector<std::pair<std::string, std::string>> ids = {{"ws_aa11", "mine"},
                                                                  {"ws_aa22", ""},
                                                                  {"ws_bb33", "aa"},
                                                                  {"ws_cc44", "twice"},
                                                                  {"ws_cc55", "twice"}};
    CHECK(chooseId("ws_aa11", ids) == "ws_aa11");
    CHECK(chooseId("mine", ids) == "ws_aa11");
    CHECK(chooseId("ws_b", ids) == "ws_bb33");
    CHECK(chooseId("bb", ids) == "ws_bb33");
    CHECK(chooseId("aa", ids) == "ws_bb33");  // a name wins: it is typed on purpose
    CHECK(chooseId("ws_dd", ids).empty());
    CHECK(chooseId("", ids).empty());
    CHECK_THROWS_AS(chooseId("ws_aa", ids), UsageError);
    CHECK_THROWS_AS(chooseId("twice", ids), UsageError);
}

TEST_CASE("YAML output keeps the type of every value and escapes control characters",
          "[unit][cli]") {
    const Json value = {{"a", {{"plain", "python"}, {"number", "12"}, {"switch", "yes"}}},
                        {"b", Json::array({1, true, nullptr, "x: y\n\x1b", "größer"})},
                        {"empty", Json::object()}};
    CHECK(yamlText(value) ==
          "a:\n  plain: python\n  number: \"12\"\n  switch: \"yes\"\nb:\n  - 1\n  - true\n  - ~\n"
          "  - \"x: y\\n\\x1b\"\n  - \"gr\\xf6\\xdfer\"\nempty: {}\n");
}

TEST_CASE("ages are short and work for the past and the future", "[unit][cli]") {
    const WallTime now = fromUnixMillis(1'700'000'000'000);  // 2023-11-14T22:13:20Z
    CHECK(age("2023-11-14T22:13:15.500Z", now) == "5s");
    CHECK(age("2023-11-14T22:33:20Z", now) == "20m");
    CHECK(age("2023-11-11T22:13:20Z", now) == "3d");
    CHECK(age("", now) == "-");
}

TEST_CASE("tables accept missing fields", "[unit][cli]") {
    const WallTime now = fromUnixMillis(1'700'000'000'000);
    const std::vector<Json> items = {Json::object(), {{"metadata", {{"name", "python"}}}}};
    const std::string text = poolTable(items, now);
    CHECK(text.find("python") != std::string::npos);
    const Json holds = {{"type", "Ready"}, {"status", "True"}};
    Json pool = {{"status", {{"conditions", Json::array({holds})}}}};
    CHECK(poolTable({pool}, now).find("Ready") != std::string::npos);
    pool["status"]["conditions"].push_back(
        {{"type", "Prewarmed"}, {"status", "False"}, {"reason", "InstallingPackages"}});
    CHECK(poolTable({pool}, now).find("Installing") != std::string::npos);
    pool["status"]["conditions"].push_back(
        {{"type", "Mirrored"}, {"status", "False"}, {"message", "no Python index is mirrored"}});
    pool["status"]["conditions"].push_back(
        {{"type", "Credentials"}, {"status", "False"}, {"message", "secret a: no such file"}});
    CHECK(poolTable({pool}, now).find("no Python index is mirrored; secret a: no such file") !=
          std::string::npos);
    pool["status"]["conditions"].push_back(
        {{"type", "ScalingLimited"}, {"status", "True"}, {"message", "limits.members is 2"}});
    pool["status"]["conditions"].push_back(
        {{"type", "GpusAvailable"}, {"status", "True"}, {"message", "no GPU is missing"}});
    CHECK(poolTable({pool}, now).find("; limits.members is 2") != std::string::npos);
    CHECK(poolTable({pool}, now).find("no GPU") == std::string::npos);
    pool["status"]["conditions"].push_back(
        {{"type", "Degraded"}, {"status", "True"}, {"message", "no image\nby that name"}});
    CHECK(poolTable({pool}, now).find("no image by that name") != std::string::npos);
    CHECK(poolTable({pool}, now).find("mirrored") == std::string::npos);
    CHECK(poolTable({pool}, now).find("Degraded") != std::string::npos);
    pool["status"]["conditions"][0] = {
        {"type", "Ready"}, {"status", "False"}, {"reason", "Drained"}};
    CHECK(poolTable({pool}, now).find("Drained") != std::string::npos);
    CHECK(workspaceTable({Json::object()}, now).find('-') != std::string::npos);
    CHECK(fieldList({{"a", {{"b", 1}}}, {"c", Json::array({{{"d", "e"}}})}}) ==
          "FIELD   VALUE\na.b     1\nc[0].d  e\n");
}
