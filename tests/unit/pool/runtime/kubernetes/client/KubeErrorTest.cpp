#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pool/runtime/kubernetes/client/KubeError.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;

namespace {

http::ClientResponse answer(int status, const std::string& body, http::ClientHeaders headers = {}) {
    return {status, std::move(headers), body};
}

std::string statusBody(int code, const std::string& reason) {
    return dumpJson({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", "why"}});
}

}  // namespace

TEST_CASE("an answer's code and reason give the kind of failure", "[unit][kubernetes]") {
    struct Row {
        int code;
        const char* reason;
        KubeErrorKind kind;
    };
    const std::vector<Row> rows{{400, "BadRequest", KubeErrorKind::BadRequest},
                                {401, "Unauthorized", KubeErrorKind::Unauthorized},
                                {403, "Forbidden", KubeErrorKind::Forbidden},
                                {404, "NotFound", KubeErrorKind::NotFound},
                                {409, "AlreadyExists", KubeErrorKind::AlreadyExists},
                                {409, "Conflict", KubeErrorKind::Conflict},
                                {410, "Expired", KubeErrorKind::Gone},
                                {410, "Gone", KubeErrorKind::Gone},
                                {415, "UnsupportedMediaType", KubeErrorKind::BadRequest},
                                {422, "Invalid", KubeErrorKind::Invalid},
                                {429, "TooManyRequests", KubeErrorKind::TooManyRequests},
                                {500, "InternalError", KubeErrorKind::Internal},
                                {500, "ServerTimeout", KubeErrorKind::Unavailable},
                                {503, "ServiceUnavailable", KubeErrorKind::Unavailable},
                                {504, "Timeout", KubeErrorKind::Timeout}};
    for (const Row& row : rows) {
        const KubeError error = errorOf(answer(row.code, statusBody(row.code, row.reason)));
        INFO(row.code << " " << row.reason);
        CHECK(error.kind == row.kind);
        CHECK(error.status == row.code);
        CHECK(error.reason == row.reason);
        CHECK(error.message == "why");
        // A server that failed may have made the change. A server that refused has not.
        CHECK(error.ambiguous == (row.code >= 500));
    }
}

TEST_CASE("a version that the server has not seen differs from a plain timeout",
          "[unit][kubernetes]") {
    Json body = parseJson(statusBody(504, "Timeout"));
    CHECK(errorOf(answer(504, dumpJson(body))).kind == KubeErrorKind::Timeout);
    body["details"]["causes"] = Json::array({{{"reason", "ResourceVersionTooLarge"}}});
    CHECK(errorOf(answer(504, dumpJson(body))).kind == KubeErrorKind::VersionTooLarge);
    body.erase("details");
    body["message"] = "Too large resource version: 7, current: 5";
    CHECK(errorOf(answer(504, dumpJson(body))).kind == KubeErrorKind::VersionTooLarge);
}

TEST_CASE("the time to wait comes from the header or the Status, within reason",
          "[unit][kubernetes]") {
    using std::chrono::seconds;
    const std::string body = statusBody(429, "TooManyRequests");
    CHECK_FALSE(errorOf(answer(429, body)).retry_after);
    CHECK(errorOf(answer(429, body, {{"retry-after", "7"}})).retry_after == seconds(7));
    CHECK(errorOf(answer(429, body, {{"Retry-After", "999999"}})).retry_after == seconds(3600));
    for (const char* wrong : {"soon", "-1", "1.5", ""}) {
        INFO(wrong);
        CHECK_FALSE(errorOf(answer(429, body, {{"Retry-After", wrong}})).retry_after);
    }
    Json detailed = parseJson(body);
    detailed["details"]["retryAfterSeconds"] = 3;
    CHECK(errorOf(answer(429, dumpJson(detailed))).retry_after == seconds(3));
    detailed["details"]["retryAfterSeconds"] = UINT64_MAX;
    CHECK(errorOf(answer(429, dumpJson(detailed))).retry_after == seconds(3600));
    detailed["details"]["retryAfterSeconds"] = -5;
    CHECK_FALSE(errorOf(answer(429, dumpJson(detailed))).retry_after);
}

TEST_CASE("an answer that is no Status is still an error with a message", "[unit][kubernetes]") {
    const KubeError page = errorOf(answer(503, "<html>upstream is away</html>"));
    CHECK(page.kind == KubeErrorKind::Unavailable);
    CHECK(page.message == "<html>upstream is away</html>");
    CHECK(errorOf(answer(404, "")).kind == KubeErrorKind::NotFound);
    CHECK(errorOf(answer(404, "[1]")).kind == KubeErrorKind::NotFound);
    CHECK(errorOf(answer(500, std::string(5'000, 'x'))).message.size() == 1'024);
}

TEST_CASE("an ERROR event without a usable code counts as a failure of the server",
          "[unit][kubernetes]") {
    CHECK(errorOf(Json::object()).kind == KubeErrorKind::Internal);
    CHECK(errorOf(Json{{"code", "410"}}).kind == KubeErrorKind::Internal);
    CHECK(errorOf(Json{{"code", 410}, {"reason", "Expired"}}).kind == KubeErrorKind::Gone);
}

TEST_CASE("a write whose answer was lost may have been carried out", "[unit][kubernetes]") {
    using http::ExchangeError;
    CHECK(errorOf(ExchangeError(ExchangeError::Kind::Lost, "lost")).ambiguous);
    CHECK(errorOf(ExchangeError(ExchangeError::Kind::Late, "late")).ambiguous);
    CHECK_FALSE(errorOf(ExchangeError(ExchangeError::Kind::Connect, "refused")).ambiguous);
    CHECK_FALSE(errorOf(ExchangeError(ExchangeError::Kind::Distrust, "bad")).ambiguous);
}
