#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/mcp/http/McpEndpoints.h"
#include "api/mcp/protocol/Era.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/FakeRevocations.h"
#include "tests/support/FakeServices.h"

namespace hearth::mcp {

using test::FakeExecution;
using test::FakeRequest;
using test::FakeServices;
using test::FakeStock;
using test::FakeStream;
using Headers = std::vector<std::pair<std::string, std::string>>;

/// A request that begins now.
inline FakeRequest requestOf(const std::string& method, const std::string& target,
                             Headers headers = {}, std::string body = {}) {
    FakeRequest request(method, target, std::move(body));
    request.with(std::move(headers));
    request.started = SystemClock().now();
    return request;
}

/// Returns tenants a and b. The first has two tokens.
inline std::map<std::string, controller::Principal> twoTenants() {
    std::map<std::string, controller::Principal> known;
    for (const std::string token : {"token-a", "token-b", "second-a"}) {
        known[token] = {token.substr(token.size() - 1), controller::Role::User, token};
    }
    return known;
}

inline Json message(const std::string& method, Json id, Json params = Json::object()) {
    return {{"jsonrpc", "2.0"},
            {"id", std::move(id)},
            {"method", method},
            {"params", std::move(params)}};
}

inline Json runMessage(Json id) {
    return message(
        "tools/call", std::move(id),
        {{"name", "run"}, {"arguments", {{"command", "x"}}}, {"_meta", {{"progressToken", "p"}}}});
}

/// A handler on fake services, with a client's side of it.
struct Scene {
    static constexpr std::size_t kCallsOfTenant = 10;

    FakeServices house;
    auth::Authenticator authenticator{house.tokens};
    auth::WorkerShares shares{8};
    SystemClock rate_clock;
    auth::RateLimits limits{0, 0, rate_clock};
    test::FakeRevocations revocations;
    McpEndpoints surface;
    Headers headers{{"Content-Type", "application/json; charset=utf-8"},
                    {"Accept", "application/json, text/event-stream"}};

    explicit Scene(std::chrono::milliseconds inline_wait = std::chrono::milliseconds(0),
                   std::size_t calls_of_tenant = kCallsOfTenant)
        : surface(house.services, authenticator, shares, limits, revocations,
                  McpOptions{inline_wait, 4U << 20U, calls_of_tenant}) {
        surface.mount("", nativeCatalog(house.services));
    }

    /// The target of every request.
    std::string endpoint = "/mcp";

    api::Response send(const std::string& method, const std::string& body) {
        FakeRequest request = requestOf(method, endpoint, headers, body);
        return surface.handle(request);
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

inline constexpr const char* kVersion = "2026-07-28";

/// Returns a message of 2026-07-28, and sets the headers that belong to it.
inline Json modern(Scene& scene, const std::string& method, Json id, Json params = Json::object()) {
    params["_meta"] = {{envelope::kVersion, kVersion}, {envelope::kCapabilities, Json::object()}};
    scene.set("MCP-Protocol-Version", kVersion);
    scene.set("Mcp-Method", method);
    const std::string name =
        stringMember(params, "name").value_or(stringMember(params, "uri").value_or(""));
    scene.set("Mcp-Name", name);
    return message(method, std::move(id), std::move(params));
}

inline int errorCode(const Json& answer) {
    return answer.at("error").at("code").get<int>();
}

/// Starts the stream of an answer that has become one.
inline std::shared_ptr<FakeStream> started(const api::Response& response) {
    auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    return stream;
}

}  // namespace hearth::mcp
