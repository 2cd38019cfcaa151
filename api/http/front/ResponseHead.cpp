#include "api/http/front/ResponseHead.h"

#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Timestamp.h>

#include <array>
#include <charconv>
#include <stdexcept>

#include "base/http/RequestHead.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

constexpr std::array<std::string_view, 6> kOwnHeaders{
    "Content-Length", "Transfer-Encoding", "Connection", "Date", "X-Request-Id", "Server"};

void checkHeader(const std::string& name, const std::string& value) {
    if (!isToken(name)) throw std::invalid_argument("response header with a malformed name");
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) {
            throw std::invalid_argument("response header with a control character: " + name);
        }
    }
    for (const std::string_view own : kOwnHeaders) {
        if (equalsIgnoreCase(name, own)) {
            throw std::invalid_argument("response header that the front sets itself: " + name);
        }
    }
}

}  // namespace

const std::string& DateText::at(WallTime now) {
    const std::int64_t second = toUnixMillis(now) / 1000;
    if (second != second_) {
        second_ = second;
        text_ = Poco::DateTimeFormatter::format(Poco::Timestamp::fromEpochTime(second),
                                                Poco::DateTimeFormat::HTTP_FORMAT);
    }
    return text_;
}

bool bodiless(int status) noexcept {
    return status < 200 || status == 204 || status == 304;
}

std::string chunkLine(std::size_t size) {
    std::array<char, 20> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size() - 2, size, 16);
    *end.ptr = '\r';
    *(end.ptr + 1) = '\n';
    return {text.data(), end.ptr + 2};
}

void checkResponse(const Response& response) {
    if (response.status < 200 || response.status > 599) {
        throw std::invalid_argument("response status out of range");
    }
    for (const auto& [name, value] : response.headers) checkHeader(name, value);
}

// Not HTTPResponse::write(), whose stream and copy made claims 8 to 12 % slower (see
// api/http/DECISIONS.md).
std::string renderHead(const Response& response, const Framing& framing) {
    using Poco::Net::HTTPResponse;
    std::string head;
    head.reserve(320);
    const auto field = [&head](std::string_view name, std::string_view value) {
        head.append(name).append(": ").append(value).append("\r\n");
    };
    const auto status = static_cast<HTTPResponse::HTTPStatus>(response.status);
    head.append(HTTPResponse::HTTP_1_1).append(" ").append(std::to_string(response.status));
    head.append(" ").append(HTTPResponse::getReasonForStatus(status)).append("\r\n");
    field(HTTPResponse::DATE, framing.date);
    field("X-Request-Id", framing.request_id);
    for (const auto& [name, value] : response.headers) field(name, value);
    if (framing.length) field(HTTPResponse::CONTENT_LENGTH, std::to_string(*framing.length));
    if (framing.chunked) field(HTTPResponse::TRANSFER_ENCODING, "chunked");
    if (!framing.keep_alive) {
        field(HTTPResponse::CONNECTION, "close");
    } else if (!framing.http11) {
        field(HTTPResponse::CONNECTION, "keep-alive");
    }
    return head.append("\r\n");
}

}  // namespace hearth::api
