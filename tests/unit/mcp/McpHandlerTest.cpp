#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "api/mcp/http/McpHandler.h"
#include "base/http/Url.h"
#include "tests/unit/mcp/Fakes.h"

namespace hearth::mcp {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

class FakeRequest final : public api::Request {
public:
    FakeRequest(std::string method, Headers headers, std::string body)
        : method_(std::move(method)), headers_(std::move(headers)), body_(std::move(body)) {}
    const std::string& method() const override { return method_; }
    const std::string& path() const override { return path_; }
    const std::string& rawPath() const override { return path_; }
    std::optional<std::string> query(std::string_view) const override { return std::nullopt; }
    const std::vector<std::pair<std::string, std::string>>& queryAll() const override {
        return none_;
    }
    std::optional<std::string> header(std::string_view name) const override {
        for (const auto& [key, value] : headers_) {
            if (equalsIgnoreCase(key, name)) return value;
        }
        return std::nullopt;
    }
    const std::string& peer() const override { return peer_; }
    bool peerIsLoopback() const override { return true; }
    const std::string& id() const override { return id_; }
    const std::string& traceId() const override { return id_; }
    TimePoint startedAt() const override { return SystemClock().now(); }
    std::optional<std::uint64_t> contentLength() const override { return body_.size(); }
    std::string readBody(std::size_t limit) override {
        if (body_.size() > limit) throw Error(ErrorCode::PayloadTooLarge, "too large");
        return body_;
    }
    std::size_t readSome(char*, std::size_t) override { return 0; }
    std::stop_token stopToken() const override { return stop_.get_token(); }
    bool clientGone() const override { return false; }
    void stopServer() { stop_.request_stop(); }

private:
    std::string method_;
    Headers headers_;
    std::string body_;
    std::string path_ = "/mcp";
    std::string peer_ = "127.0.0.1";
    std::string id_ = "req_1";
    Headers none_;
    std::stop_source stop_;
};

class FakeStream final : public api::Stream {
public:
    bool send(std::string bytes) override {
        const std::lock_guard lock(mutex_);
        if (ended_) return false;
        sent_ += bytes;
        changed_.notify_all();
        return true;
    }
    std::size_t pending() const override { return 0; }
    void cut() override { finish(); }
    void finish() override {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    bool closed() const override {
        const std::lock_guard lock(mutex_);
        return ended_;
    }
    void onDrained(std::function<void()>) override {}
    void onClosed(std::function<void()>) override {}

    /// What was sent once `text` is in it (or the stream has ended, with "").
    std::string until(const std::string& text) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(10), [&] {
            return text.empty() ? ended_ : sent_.find(text) != std::string::npos;
        });
        return sent_;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string sent_;
    bool ended_ = false;
};

Json message(const std::string& method, Json id, Json params = Json::object()) {
    return {{"jsonrpc", "2.0"},
            {"id", std::move(id)},
            {"method", method},
            {"params", std::move(params)}};
}

Json runMessage(Json id) {
    return message(
        "tools/call", std::move(id),
        {{"name", "run"}, {"arguments", {{"command", "x"}}}, {"_meta", {{"progressToken", "p"}}}});
}

/// A handler on fake services, and a client's side of it.
struct Scene {
    fake::House house;
    auth::Authenticator authenticator{house.tokens};
    auth::WorkerShares shares{8};
    McpHandler handler;
    Headers headers{{"Content-Type", "application/json; charset=utf-8"},
                    {"Accept", "application/json, text/event-stream"}};

    explicit Scene(std::chrono::milliseconds inline_wait = std::chrono::milliseconds(0))
        : handler(house.services, authenticator, shares, McpOptions{inline_wait, 4U << 20U, 10}) {}

    api::Response send(const std::string& method, const std::string& body) {
        FakeRequest request(method, headers, body);
        return handler.handle(request);
    }
    api::Response post(const Json& body) { return send("POST", dumpJson(body)); }
    Json postJson(const Json& body) { return parseJson(std::get<std::string>(post(body).body)); }
    void set(const std::string& name, const std::string& value) {
        std::erase_if(headers, [&](const auto& one) { return one.first == name; });
        headers.emplace_back(name, value);
    }
    void open(const std::string& version = "2025-11-25") {
        const api::Response response =
            post(message("initialize", 0, {{"protocolVersion", version}}));
        for (const auto& [name, value] : response.headers) {
            if (name == "Mcp-Session-Id") set(name, value);
        }
    }
    void keepRunning() {
        house.executions.behave = [](const auto&, const auto&) {};
    }
};

int errorCode(const Json& answer) {
    return answer.at("error").at("code").get<int>();
}

}  // namespace

TEST_CASE("initialize answers the version, what is served, and a session", "[unit][mcp]") {
    Scene scene;
    const Json params = {{"protocolVersion", "2025-06-18"}};
    const Json result = scene.postJson(message("initialize", 0, params))["result"];
    CHECK(result["protocolVersion"] == "2025-06-18");
    CHECK(result["capabilities"] == Json{{"tools", {{"listChanged", false}}}});
    CHECK(result["instructions"].get<std::string>().size() > 100);
    CHECK(errorCode(scene.postJson(message("initialize", "i"))) == -32602);
}

TEST_CASE("HTTP rules of the transport are kept", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const Json initialized = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
    CHECK(scene.post(initialized).status == 202);
    CHECK(std::get<std::string>(scene.post(initialized).body).empty());
    CHECK(scene.post(message("no/such", 1)).status == 200);
    CHECK(errorCode(scene.postJson(message("no/such", 1))) == -32601);
    CHECK(scene.postJson(message("ping", 0)) == resultMessage(0, Json::object()));
    CHECK(scene.send("GET", "").status == 405);
    CHECK(scene.send("GET", "").headers.back().first == "Allow");
    CHECK(scene.send("POST", "{").status == 400);
    CHECK(scene.send("POST", std::string(5U << 20U, ' ')).status == 413);
    scene.set("Accept", "text/html");
    CHECK(scene.post(message("ping", 1)).status == 406);
    scene.set("Accept", "application/json");
    CHECK(scene.post(message("ping", 1)).status == 200);
    scene.set("Accept", "text/event-stream");
    CHECK(std::get<std::string>(scene.post(message("ping", 1)).body).starts_with("event: message"));
    scene.set("Content-Type", "text/plain");
    CHECK(scene.post(message("ping", 1)).status == 415);
}

TEST_CASE("a request needs a session that lives", "[unit][mcp]") {
    Scene scene;
    CHECK(scene.post(message("ping", 1)).status == 400);
    scene.set("Mcp-Session-Id", "unknown");
    CHECK(scene.post(message("ping", 1)).status == 404);
    scene.open();
    scene.set("MCP-Protocol-Version", "1900-01-01");
    CHECK(scene.post(message("ping", 1)).status == 400);
    scene.set("MCP-Protocol-Version", "2025-11-25");
    CHECK(scene.post(message("ping", 1)).status == 200);
    CHECK(scene.send("DELETE", "").status == 204);
    CHECK(scene.post(message("ping", 1)).status == 404);
    CHECK(scene.send("DELETE", "").status == 404);
}

TEST_CASE("a session of one tenant is unknown to another", "[unit][mcp]") {
    Scene scene;
    scene.house.tokens.required = true;
    CHECK_THROWS_AS(scene.post(message("ping", 1)), Error);
    scene.set("Authorization", "Bearer token-a");
    scene.open();
    CHECK(scene.post(message("ping", 1)).status == 200);
    scene.set("Authorization", "Bearer token-b");
    CHECK(scene.post(message("ping", 1)).status == 404);
}

TEST_CASE("batches are answered in 2025-03-26 only", "[unit][mcp]") {
    Scene scene;
    const Json batch = Json::array({message("ping", 1), message("ping", "2")});
    scene.open();
    CHECK(scene.post(batch).status == 400);
    scene.open("2025-03-26");
    const Json answers = scene.postJson(batch);
    REQUIRE(answers.size() == 2);
    CHECK(answers[0]["id"] == 1);
    CHECK(answers[1]["id"] == "2");
    const Json wrong = scene.postJson(Json::array({message("initialize", 1)}));
    CHECK(errorCode(wrong[0]) == -32600);
}

TEST_CASE("a modern request learns which versions are served", "[unit][mcp]") {
    Scene scene;
    const Json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
    const Json discover = message("server/discover", "probe", {{"_meta", meta}});
    CHECK(scene.post(discover).status == 400);
    const Json answer = scene.postJson(discover);
    CHECK(answer["id"] == "probe");
    CHECK(errorCode(answer) == -32022);
    CHECK(answer["error"]["data"]["requested"] == "2026-07-28");
    CHECK(answer["error"]["data"]["supported"][0] == "2025-11-25");
}

TEST_CASE("an unknown tool is a protocol error, a failing tool a result", "[unit][mcp]") {
    Scene scene;
    scene.open();
    CHECK(errorCode(scene.postJson(message("tools/call", 1, {{"name", "nope"}}))) == -32602);
    const Json call = {{"name", "run"}, {"arguments", Json::object()}};
    CHECK(scene.postJson(message("tools/call", 1, call))["result"]["isError"] == true);
}

TEST_CASE("a quick call is answered as JSON", "[unit][mcp]") {
    Scene scene(std::chrono::seconds(5));
    scene.open();
    const Json result = scene.postJson(runMessage(7))["result"];
    CHECK(result["content"][0]["text"].get<std::string>().starts_with("ok, exit 0"));
    CHECK_FALSE(result.contains("structuredContent"));
}

TEST_CASE("a run that its agent refuses is a result that says why", "[unit][mcp]") {
    Scene scene(std::chrono::seconds(5));
    scene.house.executions.behave = [](const auto&, const auto& execution) {
        execution->refusal = Error(ErrorCode::Conflict, "the sandbox has too many processes");
    };
    scene.open();
    const Json result = scene.postJson(runMessage(7))["result"];
    CHECK(result["isError"] == true);
    CHECK(result["content"][0]["text"].get<std::string>().find("too many processes") !=
          std::string::npos);
}

TEST_CASE("a slow call becomes a stream with progress and one result", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage(7));
    CHECK(response.keepalive == ": keepalive\n\n");
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    CHECK(stream->until("notifications/progress").find("\"progressToken\":\"p\"") !=
          std::string::npos);
    scene.house.executions.newest()->end("ok", 0);
    const std::string sent = stream->until("");
    CHECK(sent.find("\"id\":7,\"result\"") != std::string::npos);
    CHECK(sent.ends_with("\n\n"));
    CHECK(stream->closed());
}

TEST_CASE("a cancelled call is killed and gets no answer", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage("c"));
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    const Json cancel = {{"jsonrpc", "2.0"},
                         {"method", "notifications/cancelled"},
                         {"params", {{"requestId", "c"}}}};
    CHECK(scene.post(cancel).status == 202);
    CHECK(stream->until("").find("\"result\"") == std::string::npos);
    CHECK(stream->closed());
    CHECK(scene.house.executions.newest()->view().status == "killed");
}

TEST_CASE("only the session that made a call can cancel it", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage(1));
    scene.open();
    scene.post({{"jsonrpc", "2.0"},
                {"method", "notifications/cancelled"},
                {"params", {{"requestId", 1}}}});
    CHECK(scene.house.executions.newest()->view().status == "running");
}

TEST_CASE("a stopping server answers slow calls with what there is", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    FakeRequest request("POST", scene.headers, dumpJson(runMessage(1)));
    const api::Response response = scene.handler.handle(request);
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    request.stopServer();
    CHECK(stream->until("").find("running; run_id ex_") != std::string::npos);
    CHECK(scene.house.executions.newest()->view().status == "running");
}

TEST_CASE("a batch with a slow call streams each answer and ends after the last", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open("2025-03-26");
    const api::Response response = scene.post(Json::array({message("ping", 1), runMessage(2)}));
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    CHECK(stream->until("\"id\":1").find("\"result\":{}") != std::string::npos);
    CHECK_FALSE(stream->closed());
    scene.house.executions.newest()->end("ok", 0);
    CHECK(stream->until("").find("\"id\":2") != std::string::npos);
}

}  // namespace hearth::mcp
