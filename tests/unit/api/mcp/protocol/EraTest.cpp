#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/mcp/protocol/Era.h"
#include "api/mcp/protocol/Session.h"
#include "tests/support/FakeRevocations.h"

namespace hearth::mcp {
namespace {

using Kind = Classified::Kind;

const std::string kModern = "2026-07-28";

Json request(const std::string& method, Json id = 1, Json params = Json::object()) {
    return {{"jsonrpc", "2.0"},
            {"id", std::move(id)},
            {"method", method},
            {"params", std::move(params)}};
}

Json withClaim(const std::string& method, const std::string& version = kModern) {
    return request(method, 1,
                   {{"_meta",
                     {{"io.modelcontextprotocol/protocolVersion", version},
                      {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}});
}

}  // namespace

TEST_CASE("the era of a request comes from its body", "[unit][mcp]") {
    struct Row {
        const char* what;
        Json body;
        std::optional<std::string> header;
        Kind kind;
        int code;
    };
    Json broken = withClaim("tools/list");
    broken["params"]["_meta"].erase("io.modelcontextprotocol/clientCapabilities");
    const Json notification = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
    const Json response = {{"jsonrpc", "2.0"}, {"id", 1}, {"result", Json::object()}};
    const std::vector<Row> rows = {
        {"plain", request("tools/list"), std::nullopt, Kind::Legacy, 0},
        {"legacy header", request("tools/list"), "2025-11-25", Kind::Legacy, 0},
        {"garbage header", request("tools/list"), "nonsense", Kind::Legacy, 0},
        {"claim", withClaim("tools/list"), kModern, Kind::Modern, 0},
        {"claim without header", withClaim("tools/list"), std::nullopt, Kind::Modern, 0},
        {"discover", withClaim("server/discover"), kModern, Kind::Modern, 0},
        {"claim against header", withClaim("tools/list"), "2025-11-25", Kind::Refused, -32020},
        {"modern header alone", request("tools/list"), kModern, Kind::Refused, -32602},
        {"initialize, modern header", request("initialize"), kModern, Kind::Refused, -32020},
        {"initialize", request("initialize"), std::nullopt, Kind::Legacy, 0},
        {"broken envelope", broken, kModern, Kind::Refused, -32602},
        {"notification", notification, std::nullopt, Kind::Legacy, 0},
        {"modern notification", notification, kModern, Kind::Dropped, 0},
        {"response", response, kModern, Kind::Legacy, 0},
        {"batch", Json::array({notification}), std::nullopt, Kind::Legacy, 0},
        {"empty batch", Json::array(), std::nullopt, Kind::Refused, -32600},
        {"batch with claim", Json::array({withClaim("ping")}), std::nullopt, Kind::Refused, -32600},
        {"text", Json("x"), std::nullopt, Kind::Refused, -32600},
        {"null id", request("ping", nullptr), std::nullopt, Kind::Refused, -32600},
        {"fraction id", request("ping", 1.5), std::nullopt, Kind::Refused, -32600},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        const Classified got = classify(row.body, row.header);
        CHECK(got.kind == row.kind);
        CHECK(got.error.code == (row.code == 0 ? rpc::kInternal : row.code));
        if (row.kind == Kind::Refused) CHECK(got.status == 400);
    }
}

TEST_CASE("null means absent for every optional field", "[unit][mcp]") {
    const Classified plain = classify(request("ping", 1, nullptr), std::nullopt);
    REQUIRE(plain.kind == Kind::Legacy);
    CHECK(plain.messages.front().params == Json::object());
    const Classified list =
        classify(request("tools/list", 1, {{"cursor", nullptr}, {"_meta", nullptr}}), std::nullopt);
    REQUIRE(list.kind == Kind::Legacy);
    CHECK(list.messages.front().params == Json::object());
    const Json notification = {
        {"jsonrpc", "2.0"}, {"method", "notifications/initialized"}, {"params", nullptr}};
    CHECK(classify(notification, std::nullopt).kind == Kind::Legacy);
    Json claim = withClaim("tools/list");
    claim["params"]["_meta"][envelope::kClient] = nullptr;
    claim["params"]["_meta"][envelope::kLogLevel] = nullptr;
    CHECK(classify(claim, kModern).kind == Kind::Modern);
}

TEST_CASE("ids are echoed with their value and type", "[unit][mcp]") {
    for (const Json& id : {Json(0), Json(-3), Json("server-discover-probe-1"), Json("0")}) {
        const Classified got = classify(request("ping", id), std::nullopt);
        REQUIRE(got.kind == Kind::Legacy);
        CHECK(resultMessage(got.messages.front().id, Json::object())["id"] == id);
    }
}

TEST_CASE("an error without a known id has no id", "[unit][mcp]") {
    CHECK_FALSE(errorMessage({}, {rpc::kParseError, "x", {}}).contains("id"));
}

TEST_CASE("a requested version is echoed if it is served, else the newest is offered",
          "[unit][mcp]") {
    CHECK(negotiate("2024-11-05") == "2024-11-05");
    CHECK(negotiate("2026-07-28") == "2025-11-25");
    CHECK(negotiate("") == "2025-11-25");
}

TEST_CASE("a session id is known again by any server with the same key", "[unit][mcp]") {
    const ManualClock clock;
    test::FakeRevocations revocations;
    SessionIds before("secret", revocations, clock);
    const SessionIds after("secret", revocations, clock);
    const std::string id = before.issue("a", "2025-03-26");
    REQUIRE(after.check(id, "a"));
    CHECK(after.check(id, "a")->version == "2025-03-26");
    CHECK_FALSE(after.check(id, "b"));
    CHECK_FALSE(SessionIds("other", revocations, clock).check(id, "a"));
    for (const char c : id) CHECK((c > 0x20 && c < 0x7F));
}

TEST_CASE("a session id that was changed, ended or too old is refused", "[unit][mcp]") {
    ManualClock clock;
    test::FakeRevocations revocations;
    SessionIds ids("secret", revocations, clock);
    const std::string id = ids.issue("a", "2025-11-25");
    std::string forged = id;
    forged[3] = forged[3] == 'A' ? 'B' : 'A';
    CHECK_FALSE(ids.check(forged, "a"));
    CHECK_FALSE(ids.check("", "a"));
    const std::string other = ids.issue("a", "2025-11-25");
    const WallTime expiry = ids.check(id, "a")->expiry;
    CHECK(expiry == clock.wall() + SessionIds::kMaxAge);
    ids.revoke({id, "a", expiry});
    CHECK_FALSE(ids.check(id, "a"));
    CHECK_FALSE(SessionIds("secret", revocations, clock).check(id, "a"));  // after a restart
    CHECK(ids.check(other, "a")->version == "2025-11-25");
    clock.advance(SessionIds::kMaxAge + std::chrono::hours(1));
    CHECK_FALSE(ids.check(other, "a"));
}

}  // namespace hearth::mcp
