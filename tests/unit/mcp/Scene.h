#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/mcp/http/Surface.h"
#include "base/http/Url.h"
#include "tests/unit/mcp/Fakes.h"

namespace hearth::mcp {

using Headers = std::vector<std::pair<std::string, std::string>>;

class FakeRequest final : public api::Request {
public:
    FakeRequest(std::string method, Headers headers, std::string body, std::string path = "/mcp",
                Headers query = {})
        : method_(std::move(method)),
          headers_(std::move(headers)),
          body_(std::move(body)),
          path_(std::move(path)),
          query_(std::move(query)) {}
    const std::string& method() const override { return method_; }
    const std::string& path() const override { return path_; }
    const std::string& rawPath() const override { return path_; }
    std::optional<std::string> query(std::string_view name) const override {
        for (const auto& [key, value] : query_) {
            if (key == name) return value;
        }
        return std::nullopt;
    }
    const std::vector<std::pair<std::string, std::string>>& queryAll() const override {
        return query_;
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
    std::string path_;
    std::string peer_ = "127.0.0.1";
    std::string id_ = "req_1";
    Headers query_;
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
        std::vector<std::function<void()>> callbacks;
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
            changed_.notify_all();
            callbacks.swap(on_closed_);
        }
        for (const auto& callback : callbacks) callback();
    }
    bool closed() const override {
        const std::lock_guard lock(mutex_);
        return ended_;
    }
    void onDrained(std::function<void()>) override {}
    void onClosed(std::function<void()> callback) override {
        {
            const std::lock_guard lock(mutex_);
            if (!ended_) {
                on_closed_.push_back(std::move(callback));
                return;
            }
        }
        callback();
    }

    /// What was sent once `text` is in it (or the stream has ended, with "").
    std::string until(const std::string& text) {
        std::unique_lock lock(mutex_);
        const bool came = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
            return text.empty() ? ended_ : sent_.find(text) != std::string::npos;
        });
        if (!came) throw std::runtime_error("never came: " + text + "; but: " + sent_);
        return sent_;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string sent_;
    bool ended_ = false;
    std::vector<std::function<void()>> on_closed_;
};

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

/// A handler on fake services, and a client's side of it.
struct Scene {
    static constexpr std::size_t kCallsOfTenant = 10;

    fake::House house;
    auth::Authenticator authenticator{house.tokens};
    auth::WorkerShares shares{8};
    SystemClock rate_clock;
    auth::RateLimits limits{0, 0, rate_clock};
    Surface surface;
    Headers headers{{"Content-Type", "application/json; charset=utf-8"},
                    {"Accept", "application/json, text/event-stream"}};

    explicit Scene(std::chrono::milliseconds inline_wait = std::chrono::milliseconds(0))
        : surface(house.services, authenticator, shares, limits,
                  McpOptions{inline_wait, 4U << 20U, kCallsOfTenant}) {
        surface.mount("", nativeCatalog(house.services));
    }

    api::Response send(const std::string& method, const std::string& body) {
        FakeRequest request(method, headers, body);
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
