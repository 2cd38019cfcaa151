#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/http/BodyReader.h"
#include "api/http/Core.h"

namespace hearth::api {

/// Random bits in bulk: one system call serves many ids. Not thread-safe.
class IdSource {
public:
    /// `prefix` and 32 hex digits.
    std::string next(std::string_view prefix);

private:
    std::array<std::uint8_t, 1024> bytes_{};
    std::size_t left_ = 0;
};

/// One request on its way through a worker.
class Exchange final : public Request {
public:
    Exchange(Connection& connection, Core& core, IdSource& ids);

    const std::string& method() const override { return connection_.head.method; }
    const std::string& path() const override { return connection_.head.path; }
    const std::string& rawPath() const override { return connection_.head.raw_path; }
    std::optional<std::string> query(std::string_view name) const override;
    const QueryParams& queryAll() const override { return connection_.head.query; }
    std::optional<std::string> header(std::string_view name) const override;
    const std::string& peer() const override { return connection_.peer; }
    bool peerIsLoopback() const override { return connection_.loopback; }
    const std::string& id() const override { return id_; }
    const std::string& traceId() const override { return trace_id_; }
    TimePoint startedAt() const override { return connection_.head_at; }
    std::optional<std::uint64_t> contentLength() const override;
    std::string readBody(std::size_t limit) override;
    std::size_t readSome(char* out, std::size_t size) override { return body_.read(out, size); }
    std::stop_token stopToken() const override { return core_.stop.get_token(); }
    bool clientGone() const override;
    void tookRoute(const std::string& pattern) override { route_ = pattern; }
    void actsFor(const std::string& tenant) override { tenant_ = tenant; }

    void addAnswerHeader(std::string name, std::string value) override {
        answer_headers_.emplace_back(std::move(name), std::move(value));
    }
    void onAnswered(std::function<void(const Response&)> callback) override {
        answered_ = std::move(callback);
    }
    /// Adds what was asked for to the answer that is about to be sent. Once.
    void complete(Response& response) {
        for (auto& header : answer_headers_) response.headers.push_back(std::move(header));
        answer_headers_.clear();
    }
    /// Tells of the answer, once.
    void tellAnswered(const Response& response) {
        if (const auto callback = std::exchange(answered_, {})) callback(response);
    }

    BodyReader& body() { return body_; }
    const std::string& route() const { return route_; }
    const std::string& tenant() const { return tenant_; }

private:
    Connection& connection_;
    Core& core_;
    BodyReader body_;
    std::string id_;
    std::string trace_id_;
    std::string route_;
    std::string tenant_;
    std::vector<std::pair<std::string, std::string>> answer_headers_;
    std::function<void(const Response&)> answered_;
};

}  // namespace hearth::api
