#include <fcntl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "api/auth/WorkspaceToken.h"
#include "api/rest/operations/Pages.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

/// Acts like the front: keeps headers for the answer, and can report the answer.
class FrontRequest final : public FakeRequest {
public:
    using FakeRequest::FakeRequest;
    void addAnswerHeader(std::string name, std::string value) override {
        told[std::move(name)] = std::move(value);
    }
    void onAnswered(std::function<void(const api::Response&)> callback) override {
        answered = std::move(callback);
    }
    std::map<std::string, std::string> told;
    std::function<void(const api::Response&)> answered;
};

const std::string kLinks = "/v1/workspaces/" + kWorkspace + "/links";

api::Response link(House& house, const std::string& key, const std::string& path = "a.txt") {
    FakeRequest request("POST", kLinks, R"({"path":")" + path + R"("})");
    request.json().with("Idempotency-Key", key);
    return house.rest.handle(request);
}

ErrorCode refusal(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& e) {
        return e.code();
    }
    return ErrorCode::Internal;
}

rest::Page<std::string> page(const Json& query, std::vector<std::string> items, bool down = false) {
    FakeRequest request("GET", "/v1/x", "");
    const api::RouteParams none;
    rest::Call call{request, none, {}, query, Json(), {}, {}};
    return rest::pageOf(
        call, std::move(items), [](const std::string& item) { return item; }, down);
}

}  // namespace

TEST_CASE("a creation repeated with its key gets the first answer", "[unit][rest]") {
    House house;
    const api::Response first = link(house, "k");
    CHECK(first.status == 201);
    CHECK(headerOf(first, "Idempotency-Replayed").empty());
    house.manual.advance(std::chrono::minutes(5));
    const api::Response again = link(house, "k");
    CHECK(again.status == 201);
    CHECK(bodyOf(again) == bodyOf(first));
    CHECK(headerOf(again, "Idempotency-Replayed") == "true");
    CHECK(bodyOf(link(house, "other")) != bodyOf(first));
    CHECK(refusal([&] { link(house, "k", "b.txt"); }) == ErrorCode::IdempotencyMismatch);
    house.manual.advance(rest::IdempotencyCache::kKeep);
    CHECK(headerOf(link(house, "k"), "Idempotency-Replayed").empty());
}

TEST_CASE("an idempotency key is taken while its request runs, and free after a failure",
          "[unit][rest]") {
    ManualClock clock;
    rest::IdempotencyCache replays(clock);
    const auto fails = []() -> api::Response { throw Error(ErrorCode::NotFound, "no"); };
    const auto works = [] {
        api::Response response;
        response.body = std::string("made");
        return response;
    };
    CHECK(refusal([&] { replays.answer("t", "s", "f", fails); }) == ErrorCode::NotFound);
    const auto within = [&] {
        CHECK(refusal([&] { replays.answer("t", "s", "f", works); }) ==
              ErrorCode::IdempotencyInFlight);
        return works();
    };
    CHECK(bodyOf(replays.answer("t", "s", "f", within)) == "made");
    CHECK(headerOf(replays.answer("t", "s", "f", fails), "Idempotency-Replayed") == "true");
    for (std::size_t i = 0; i <= rest::IdempotencyCache::kMost; ++i) {
        replays.answer("other", std::to_string(i), "f", works);
    }
    CHECK(headerOf(replays.answer("t", "s", "f", fails), "Idempotency-Replayed") == "true");
    for (std::size_t i = 0; i <= rest::IdempotencyCache::kMost; ++i) {
        replays.answer("t", std::to_string(i), "f", works);
    }
    CHECK(headerOf(replays.answer("t", "s", "f", works), "Idempotency-Replayed").empty());
}

TEST_CASE("kept answers of one tenant have a limit in bytes", "[unit][rest]") {
    ManualClock clock;
    rest::IdempotencyCache replays(clock);
    const auto of = [&](const std::string& key, std::size_t size) {
        const api::Response response = replays.answer("t", key, "f", [&] {
            api::Response made;
            made.body = std::string(size, 'x');
            return made;
        });
        return headerOf(response, "Idempotency-Replayed") == "true";
    };
    constexpr std::size_t kHalf = rest::IdempotencyCache::kMostBytes / 2;
    of("first", kHalf);
    of("second", kHalf);
    CHECK(of("first", kHalf));
    of("third", 1);
    CHECK(of("second", kHalf));
    CHECK_FALSE(of("first", kHalf));  // the oldest had to go
    CHECK_FALSE(of("large", 2 * kHalf + 1));
    CHECK_FALSE(of("large", 2 * kHalf + 1));  // it is not kept
}

TEST_CASE("pages of a list stay consistent while items come and go", "[unit][rest]") {
    const auto first = page({{"limit", 2}}, {"d", "a", "c", "b"});
    CHECK(first.items == std::vector<std::string>{"a", "b"});
    REQUIRE_FALSE(first.next_cursor.empty());
    const Json next = {{"limit", 2}, {"cursor", first.next_cursor}};
    CHECK(page(next, {"d", "a", "c"}).items == std::vector<std::string>{"c", "d"});
    CHECK(page(next, {"d", "a", "aa", "b", "c"}).items == std::vector<std::string>{"c", "d"});
    CHECK(page(next, {"a"}).items.empty());
    CHECK(page({{"limit", 4}}, {"d", "a", "c", "b"}).next_cursor.empty());
    CHECK(page({{"limit", 1}}, {"a", "b"}, true).items == std::vector<std::string>{"b"});
    for (const char* bad : {"%", "\xff", "a"}) {
        CHECK(refusal([&] { page({{"cursor", bad}}, {"a"}); }) == ErrorCode::InvalidArgument);
    }
}

TEST_CASE("a tenant past its rate is refused, and every answer tells the rate", "[unit][rest]") {
    House house;
    auth::RateLimits limits(1, 2, house.clock);
    rest::RestHandler handler(house.services, house.authenticator, house.shares, limits);
    for (int left = 1; left >= 0; --left) {
        FrontRequest request("GET", "/v1/pools", "");
        CHECK(handler.handle(request).status == 200);
        CHECK(request.told["RateLimit-Limit"] == "2");
        CHECK(request.told["RateLimit-Remaining"] == std::to_string(left));
    }
    FrontRequest request("GET", "/v1/pools", "");
    CHECK(refusal([&] { handler.handle(request); }) == ErrorCode::RateLimited);
    CHECK(request.told["RateLimit-Reset"] == "2");
}

TEST_CASE("the audit log has changes and denials, but neither reads nor request bodies",
          "[unit][rest][audit]") {
    House house;
    std::string pattern = (fs::temp_directory_path() / "hearth-gate-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    const fs::path file = fs::path(pattern) / "audit";
    {
        SystemClock clock;
        metrics::AuditLog audit(file.string(), clock, house.log, house.metrics);
        house.services.audit = &audit;
        const auto send = [&](const char* method, const std::string& target,
                              const std::string& body) {
            FrontRequest request(method, target, body);
            if (!body.empty()) request.json();
            const api::Response response = house.rest.handle(request);
            if (request.answered) request.answered(response);
        };
        send("GET", "/v1/pools", "");
        send("POST", "/v1/workspaces", R"({"secrets":{"TOKEN":"hush"},"pool":"python"})");
        send("DELETE", "/v1/workspaces/" + kWorkspace, "");
        FrontRequest denied("GET", "/v1/pools", "");
        denied.with("Authorization", "Bearer nobody");
        CHECK(refusal([&] { house.rest.handle(denied); }) == ErrorCode::Unauthenticated);
        api::Response answer;
        answer.status = 401;
        answer.error_code = "UNAUTHENTICATED";
        REQUIRE(denied.answered);
        denied.answered(answer);
    }
    std::ifstream in(file);
    std::vector<Json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(parseJson(line));
    fs::remove_all(pattern);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0]["operation"] == "createWorkspace");
    CHECK(lines[0]["resource"] == kWorkspace);
    CHECK(lines[0]["decision"] == "allowed");
    CHECK(lines[0]["tenant"] == "default");
    CHECK(lines[0].dump().find("hush") == std::string::npos);
    CHECK(lines[1]["operation"] == "deleteWorkspace");
    CHECK(lines[2]["decision"] == "denied");
    CHECK(lines[2]["tenant"].is_null());
}

namespace {

/// Returns the ids of the operations that accept a token for this workspace.
std::set<std::string> takenBy(House& house, const std::string& workspace) {
    const std::string& key = house.services.secret_key;
    const auth::Authenticator authenticator(house.tokens, key);
    rest::RestHandler handler(house.services, authenticator, house.shares, house.limits);
    std::set<std::string> taken;
    for (const rest::Operation& operation : handler.operations()) {
        if (operation.open || operation.hidden) continue;
        std::string path = operation.pattern;
        for (const auto& [name, value] : std::map<std::string, std::string>{
                 {"workspace", kWorkspace}, {"execution", kExecution}, {"context", kContext}}) {
            const std::size_t at = path.find("{" + name + "}");
            if (at != std::string::npos) path.replace(at, name.size() + 2, value);
        }
        FakeRequest request(operation.method, path, "{}");
        request.json().with("Authorization",
                            "Bearer " + auth::workspaceToken(key, {"acme", workspace}));
        if (refusal([&] { handler.handle(request); }) == ErrorCode::Forbidden) continue;
        taken.insert(operation.id);
    }
    return taken;
}

}  // namespace

TEST_CASE("a workspace token allows calls about its workspace only", "[unit][rest]") {
    House house;
    CHECK(takenBy(house, "ws_" + std::string(32, 'f')).empty());
    const std::set<std::string> taken = takenBy(house, kWorkspace);
    for (const char* one :
         {"getWorkspace", "deleteWorkspace", "execute", "getExecution", "followExecution",
          "killExecution", "readFile", "writeFile", "createContext", "getContext", "createLink"}) {
        CAPTURE(one);
        CHECK(taken.contains(one));
    }
    for (const char* other : {"createWorkspace", "createWorkspaces", "listWorkspaces",
                              "executeOnce", "listRunning", "listPools", "listEvents",
                              "createToken", "listTokens", "getOwnQuota", "getCapabilities"}) {
        CAPTURE(other);
        CHECK_FALSE(taken.contains(other));
    }
}
