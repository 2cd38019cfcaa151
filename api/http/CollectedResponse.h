#pragma once

#include <Poco/Net/HTTPServerResponse.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>

#include "api/http/Handler.h"

namespace hearth::api {

/// Collects a handler's answer until the handler returns, so that a slow reader holds no worker and
/// a late failure can still become a problem. Long and streamed answers are passed as a Response.
class CollectedResponse final : public Poco::Net::HTTPServerResponse {
public:
    /// `go_on` tells the client to send its body.
    explicit CollectedResponse(std::function<void()> go_on) : go_on_(std::move(go_on)) {}

    void give(Response response) { given_ = std::move(response); }
    /// Returns the collected answer without the framing headers: the front adds those. Call once.
    Response take();

    void sendContinue() override { go_on_(); }
    std::ostream& send() override;
    void sendFile(const std::string& path, const std::string& media_type) override;
    void sendBuffer(const void* bytes, std::size_t length) override;
    void redirect(const std::string& uri, HTTPStatus status) override;
    void requireAuthentication(const std::string& realm) override;
    bool sent() const override { return given_ || written_; }

private:
    std::function<void()> go_on_;
    std::optional<Response> given_;
    std::optional<std::ostringstream> written_;
};

}  // namespace hearth::api
