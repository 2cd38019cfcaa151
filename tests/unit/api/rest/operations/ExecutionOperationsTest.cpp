#include <catch2/catch.hpp>
#include <list>

#include "api/rest/model/Answers.h"
#include "tests/support/Support.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const std::string kExecutions = "/v1/workspaces/" + kWorkspace + "/executions";

FakeRequest post(const std::string& body) {
    FakeRequest request("POST", kExecutions, body);
    request.json();
    return request;
}

}  // namespace

TEST_CASE("a short execution is answered by the worker that started it", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    execution.on_wait = [&execution] { execution.end("failed", 2); };
    FakeRequest request = post(R"({"command":"false","timeoutSeconds":0.25,"env":{"A":"b"}})");
    const api::Response response = house.rest.handle(request);
    CHECK(response.status == 200);
    const Json body = parseJson(bodyOf(response));
    CHECK(body.at("status") == "failed");
    CHECK(body.at("exitCode") == 2);
    CHECK(body.at("traceId") == request.traceId());
    CHECK(execution.waits.front() < milliseconds(1000));
    CHECK(house.executions.workspace == kWorkspace);
    CHECK(house.executions.request.timeout == milliseconds(250));
    CHECK(!house.executions.request.stdin_open);
}

TEST_CASE("a longer execution is waited for without a worker", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    FakeRequest request = post(R"({"command":"sleep 9"})");
    api::Response waiting = house.rest.handle(request);
    auto& suspension = std::get<api::Suspension>(waiting.body);
    CHECK(suspension.until == TimePoint::max());
    CHECK_FALSE(suspension.ready());
    int woken = 0;
    const auto subscription = suspension.subscribe([&woken] { ++woken; });
    execution.end("ok", 0);
    CHECK(woken > 0);
    CHECK(suspension.ready());
    const api::Response response = suspension.resume();
    CHECK(response.status == 200);
    CHECK(parseJson(bodyOf(response)).at("traceId") == request.traceId());
    CHECK(headerOf(response, "Location") == "/v1/executions/" + kExecution);
}

TEST_CASE("the wait of Prefer ends the waiting, not the execution", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    execution.on_wait = [&] { house.manual.advance(execution.waits.back()); };
    const TimePoint begin = house.clock.now();
    FakeRequest request = post(R"({"command":"sleep 9"})");
    request.with("Prefer", "respond-async, wait=2");
    api::Response waiting = house.rest.handle(request);
    auto& suspension = std::get<api::Suspension>(waiting.body);
    CHECK(suspension.until == begin + std::chrono::seconds(2));
    const api::Response response = suspension.resume();
    CHECK(response.status == 202);
    CHECK(headerOf(response, "Location") == "/v1/executions/" + kExecution);
    CHECK(headerOf(response, "Preference-Applied") == "wait=2");
    CHECK(parseJson(bodyOf(response)).at("status") == "running");
    CHECK(house.executions.did.empty());

    FakeRequest hasty = post(R"({"command":"sleep 9"})");
    hasty.with("Prefer", "wait=0");
    CHECK(house.rest.handle(hasty).status == 202);
}

TEST_CASE("a read of an execution waits for its end without a worker, as its start does",
          "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    execution.on_wait = [&] { house.manual.advance(execution.waits.back()); };
    const TimePoint begin = house.clock.now();
    std::list<FakeRequest> requests;  // each lives until it is answered
    const auto get = [&](const char* prefer) {
        FakeRequest& request = requests.emplace_back("GET", "/v1/executions/" + kExecution);
        if (prefer != nullptr) request.with("Prefer", prefer);
        return house.rest.handle(request);
    };
    api::Response waiting = get("wait=2");
    auto& suspension = std::get<api::Suspension>(waiting.body);
    CHECK(suspension.until == begin + seconds(2));
    CHECK_FALSE(suspension.ready());
    const api::Response late = suspension.resume();
    CHECK(late.status == 200);
    CHECK(headerOf(late, "Preference-Applied") == "wait=2");
    CHECK(parseJson(bodyOf(late)).at("status") == "running");

    execution.end("ok", 0);
    const api::Response ended = get("wait=2");
    CHECK(headerOf(ended, "Preference-Applied") == "wait=2");
    CHECK(parseJson(bodyOf(ended)).at("status") == "ok");

    execution.waits.clear();
    for (const char* none : {static_cast<const char*>(nullptr), "wait=x", "respond-async"}) {
        const api::Response response = get(none);
        CHECK(response.status == 200);
        CHECK(headerOf(response, "Preference-Applied").empty());
    }
    CHECK(execution.waits.empty());
}

TEST_CASE("each form of a repeated start is marked as a replay", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    execution.end("ok", 0);
    for (const bool replayed : {false, true}) {
        execution.state.replayed = replayed;
        const auto said = [&house](FakeRequest request) {
            request.with("Idempotency-Key", "k");
            return headerOf(house.rest.handle(request), "Idempotency-Replayed");
        };
        const std::string expected = replayed ? "true" : "";
        CHECK(said(post(R"({"command":"x"})")) == expected);
        CHECK(said(post(R"({"command":"x","background":true})")) == expected);
        CHECK(said(post(R"({"command":"x"})").with("Accept", "text/event-stream")) == expected);
        FakeRequest shot("POST", "/v1/executions", R"({"command":"x"})");
        CHECK(said(shot.json()) == expected);
    }
}

TEST_CASE("a background execution is answered at once and keeps its input open", "[unit][rest]") {
    House house;
    FakeRequest request = post(R"({"command":"cat","background":true})");
    CHECK(house.rest.handle(request).status == 202);
    CHECK(house.executions.execution->waits.empty());
    CHECK(house.executions.request.stdin_open);

    FakeRequest given = post(R"({"command":"cat","background":true,"stdin":"x"})");
    house.rest.handle(given);
    CHECK(!house.executions.request.stdin_open);
}

TEST_CASE("a one shot passes pool, language and files to the claim", "[unit][rest]") {
    House house;
    house.executions.execution->end("ok", 0);
    FakeRequest request("POST", "/v1/executions",
                        R"({"code":"1","language":"node","pool":"p","env":{"A":"1"},)"
                        R"("files":[{"path":"f","text":"t"}]})");
    request.json().with("Idempotency-Key", "k");
    const Json body = parseJson(bodyOf(house.rest.handle(request)));
    CHECK(body.at("claim").at("source") == "warm");
    CHECK(house.executions.where.pool == "p");
    CHECK(house.executions.where.language == "node");
    CHECK(house.executions.where.files.size() == 1);
    CHECK(house.executions.where.env.empty());
    CHECK(house.executions.request.idempotency_key == "k");
    CHECK(house.executions.request.env.at("A") == "1");
    CHECK_FALSE(house.executions.request.fingerprint.empty());
}

TEST_CASE("a request may use a language name that an image defines", "[unit][rest]") {
    House house;
    house.executions.execution->end("ok", 0);
    const auto ask = [&house](const std::string& language) {
        FakeRequest request = post(R"({"code":"1","language":")" + language + "\"}");
        return house.rest.handle(request).status;
    };
    for (const char* language : {"c++", "c#", "objective-c"}) {
        CHECK(ask(language) == 200);
        CHECK(house.executions.request.language == language);
    }
    for (const char* language : {"a b", "Python", "a/b"}) CHECK_THROWS_AS(ask(language), Error);
}

TEST_CASE("packages are requested by name and reported with their versions", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    controller::RunPackages& packages = execution.state.packages.emplace();
    packages.installed = {{"numpy", "2.1"}};
    packages.duration_ms = 7;
    execution.end("ok", 0);
    FakeRequest request =
        post(R"({"code":"1","packages":["numpy==2.1","six"],"autoPackages":true})");
    Json body = parseJson(bodyOf(house.rest.handle(request)));
    CHECK(house.executions.request.packages == std::vector<std::string>{"numpy==2.1", "six"});
    CHECK(house.executions.request.auto_packages);
    CHECK(body.at("installed") == Json{{"numpy", "2.1"}});
    CHECK(body.at("installMs") == 7);
    CHECK_FALSE(body.contains("notInstalled"));
    execution.state.packages->not_installed = {{"x", "no distribution is known"}};
    FakeRequest again("GET", "/v1/executions/" + kExecution);
    CHECK(parseJson(bodyOf(house.rest.handle(again))).at("notInstalled").contains("x"));
    execution.state.packages.reset();
    FakeRequest plain("GET", "/v1/executions/" + kExecution);
    body = parseJson(bodyOf(house.rest.handle(plain)));
    CHECK_FALSE(body.contains("installed"));
    CHECK_FALSE(body.contains("installMs"));
}

TEST_CASE("output that is not UTF-8 is still valid JSON", "[unit][rest]") {
    House house;
    house.executions.execution->print(1, "a\xFF");
    house.executions.execution->state.error = Json{{"name", "E\xFF"}, {"message", "m"}};
    house.executions.execution->end("failed", 1);
    FakeRequest request("GET", "/v1/executions/" + kExecution);
    const Json body = parseJson(bodyOf(house.rest.handle(request)));
    CHECK(body.at("stdout") == "a\xEF\xBF\xBD");
    CHECK(body.at("error").at("name") == "E\xEF\xBF\xBD");
}

TEST_CASE("standard input is passed on byte for byte and closed on demand", "[unit][rest]") {
    House house;
    const std::string bytes = std::string(100'000, 'x') + std::string("\0\xFF", 2);
    FakeRequest first("POST", "/v1/executions/" + kExecution + "/stdin", bytes);
    CHECK(house.rest.handle(first).status == 204);
    CHECK(house.executions.input == bytes);
    CHECK(!house.executions.input_closed);
    FakeRequest last("POST", "/v1/executions/" + kExecution + "/stdin?close=true");
    house.rest.handle(last);
    CHECK(house.executions.input_closed);
}

TEST_CASE("a streamed execution is started and handed to the front", "[unit][rest]") {
    House house;
    FakeRequest request = post(R"({"command":"x"})");
    request.with("Accept", "application/json;q=0.5, Text/Event-Stream");
    const api::Response response = house.rest.handle(request);
    CHECK(response.status == 200);
    CHECK(headerOf(response, "Content-Type") == "text/event-stream");
    CHECK(response.keepalive == ": keepalive\n\n");
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    CHECK(stream->sent.starts_with("id: 0\nevent: started\ndata: {\"id\":\"" + kExecution));
    house.executions.execution->end("ok", 0);
    CHECK(stream->finished);
}

TEST_CASE("an execution with much output is streamed and has the same content", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    for (int i = 0; i < 100; ++i) execution.print(1 + i % 2, std::string(10'000, '\x01'));
    execution.show("text/plain", "42", true);
    execution.end("ok", 0);
    const auto whole = [&](FakeRequest request) {
        api::Response response = house.rest.handle(request);
        CHECK(headerOf(response, "Content-Type") == "application/json");
        REQUIRE(std::holds_alternative<api::StreamStarter>(response.body));
        const auto stream = std::make_shared<FakeStream>();
        std::get<api::StreamStarter>(response.body)(stream);
        REQUIRE(eventually([&] { return stream->closed(); }));
        CHECK(stream->finished);
        Json body = parseJson(stream->sent, {.bytes = 64U << 20U});
        body.erase("traceId");
        return body;
    };
    const Json expected = rest::executionJson(execution.view());
    CHECK(whole(FakeRequest("GET", "/v1/executions/" + kExecution)) == expected);
    CHECK(whole(post(R"({"command":"x"})")) == expected);

    house.executions.times_listed = 6;
    const Json list = whole(FakeRequest("GET", kExecutions + "?output=true"));
    REQUIRE(list.at("items").size() == 6);
    CHECK(list.at("nextCursor").is_null());
    CHECK(list.at("items")[0] == expected);
    CHECK(list.at("items")[3] == expected);
    Json bare = list.at("items")[5];  // the items before it already carry four MiB
    CHECK(bare.at("stdout") == "");
    CHECK(bare.at("truncated") == true);
    CHECK(bare.at("status") == "ok");
}

TEST_CASE("a list of executions has their sizes in place of their output", "[unit][rest]") {
    House house;
    FakeExecution& execution = *house.executions.execution;
    for (const std::size_t size : {std::size_t{10}, std::size_t{300'000}}) {
        execution.print(1, std::string(size, 'x'));
    }
    execution.show("text/plain", "42", true);
    execution.end("ok", 0);
    FakeRequest request("GET", kExecutions);
    const Json list = parseJson(bodyOf(house.rest.handle(request)));
    Json expected = rest::executionJson(execution.view());
    for (const char* large : {"stdout", "stderr", "results"}) expected.erase(large);
    expected["outputBytes"] = 300'010;
    expected["resultCount"] = 1;
    CHECK(list.at("items") == Json::array({expected}));
    FakeRequest asked("GET", kExecutions + "?output=false");
    CHECK(parseJson(bodyOf(house.rest.handle(asked))) == list);
}

TEST_CASE("a page of executions reads only the executions that it shows", "[unit][rest]") {
    House house;
    house.executions.times_listed = 6;
    FakeRequest request("GET", kExecutions + "?limit=1");
    const Json page = parseJson(bodyOf(house.rest.handle(request)));
    CHECK(page.at("items").size() == 1);
    CHECK(page.at("nextCursor").is_string());
    CHECK(house.executions.listed_reads == 1);
}
