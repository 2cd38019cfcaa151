#pragma once

#include <Poco/BufferedStreamBuf.h>
#include <Poco/Net/SocketAddress.h>

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/http/CollectedResponse.h"
#include "api/http/front/BodyReader.h"
#include "api/http/front/FrontContext.h"

namespace hearth::api {

/// Makes random bits in bulk: one system call serves many ids. Not thread-safe.
class IdSource {
public:
    /// Returns `prefix` and 32 hex digits.
    std::string next(std::string_view prefix);

private:
    std::array<std::uint8_t, 1024> bytes_{};
    std::size_t left_ = 0;
};

/// A request's body as a stream, for Poco's handlers.
class BodyStream final : public Poco::BufferedStreamBuf, public std::istream {
public:
    explicit BodyStream(BodyReader& body);

private:
    int readFromDevice(char* bytes, std::streamsize size) override;

    BodyReader& body_;
};

/// One request on its way through a worker.
class Exchange final : public Request {
public:
    Exchange(Connection& connection, FrontContext& core, IdSource& ids);

    const std::string& path() const override { return connection_.head.path; }
    const std::string& rawPath() const override { return connection_.head.raw_path; }
    std::optional<std::string> query(std::string_view name) const override;
    const QueryParams& queryAll() const override { return connection_.head.query; }
    const std::string& peer() const override { return forwarded_ ? *forwarded_ : connection_.peer; }
    bool peerIsLoopback() const override { return connection_.loopback && !forwarded_; }
    const std::string& id() const override { return id_; }
    const TraceContext& trace() const override { return trace_; }
    /// The caller's span; empty if the caller sent none.
    const std::string& parentSpan() const { return parent_span_; }
    TimePoint startedAt() const override { return connection_.head_at; }
    std::optional<std::uint64_t> contentLength() const override;
    std::string readBody(std::size_t limit) override;
    std::size_t readSome(char* out, std::size_t size) override;
    std::stop_token stopToken() const override { return core_.stop.get_token(); }
    bool clientGone() const override;
    std::istream& stream() override;
    /// The address, without the port.
    const Poco::Net::SocketAddress& clientAddress() const override;
    const Poco::Net::SocketAddress& serverAddress() const override { return core_.bound; }
    const Poco::Net::HTTPServerParams& serverParams() const override { return *core_.params; }
    Poco::Net::HTTPServerResponse& response() const override { return response_; }
    bool secure() const override { return core_.tls != nullptr; }
    void tookRoute(const std::string& pattern) override { route_ = pattern; }
    void actsFor(const std::string& tenant, const std::string& token_id,
                 AccessRight right) override {
        tenant_ = tenant;
        token_id_ = token_id;
        right_ = std::move(right);
    }

    void challengedBy(const std::string& challenge) override { challenge_ = &challenge; }
    void refusedFor(const char* reason) override { refusal_ = reason; }
    std::string refusal() const override { return refusal_; }
    void addAnswerHeader(std::string name, std::string value) override {
        answer_headers_.add(name, value);
    }
    void onAnswered(std::function<void(const Response&)> callback) override {
        answered_ = std::move(callback);
    }
    /// Adds the requested headers to the answer that is about to be sent. Call once.
    void complete(Response& response) {
        for (const auto& [name, value] : answer_headers_) response.headers.add(name, value);
        answer_headers_.clear();
        if (response.status == 401 && challenge_ != nullptr) {
            response.headers.set("WWW-Authenticate", *challenge_);
        }
    }
    /// Calls the callback with the answer, once.
    void tellAnswered(const Response& response) {
        if (const auto callback = std::exchange(answered_, {})) callback(response);
    }

    /// The request's log line so far, without an answer.
    AccessEntry access() const;

    BodyReader& body() { return body_; }
    CollectedResponse& collected() { return response_; }
    const std::string& route() const { return route_; }
    const std::string& tenant() const { return tenant_; }
    const std::string& tokenId() const { return token_id_; }
    const AccessRight& right() const { return right_; }
    /// Throws Error(Unauthenticated) if the right to the answer has ended since.
    void requireRight() const;

private:
    Connection& connection_;
    FrontContext& core_;
    BodyReader body_;
    const std::optional<std::string> forwarded_;  ///< the client that a trusted proxy named
    std::string id_;
    TraceContext trace_;
    std::string parent_span_;
    std::string route_;
    std::string tenant_;
    std::string token_id_;
    AccessRight right_;
    std::string refusal_;
    const std::string* challenge_ = nullptr;  ///< for a 401; null: "Bearer"
    HeaderFields answer_headers_;
    std::function<void(const Response&)> answered_;
    mutable CollectedResponse response_{[this] { body_.goOn(); }};
    std::optional<BodyStream> stream_;
    mutable std::optional<Poco::Net::SocketAddress> client_address_;
};

}  // namespace hearth::api
