#include "api/http/Wire.h"

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

std::string_view DateLine::at(WallTime now) {
    const std::int64_t second = toUnixMillis(now) / 1000;
    if (second != second_) {
        second_ = second;
        line_ = "Date: " +
                Poco::DateTimeFormatter::format(Poco::Timestamp::fromEpochTime(second),
                                                Poco::DateTimeFormat::HTTP_FORMAT) +
                "\r\n";
    }
    return line_;
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

std::string renderHead(const Response& response, const Framing& framing) {
    std::string head;
    head.reserve(320);
    head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
    if (response.status == 200) {
        head.append("OK");
    } else {
        using Poco::Net::HTTPResponse;
        head.append(HTTPResponse::getReasonForStatus(
            static_cast<HTTPResponse::HTTPStatus>(response.status)));
    }
    head.append("\r\n").append(framing.date_line);
    head.append("X-Request-Id: ").append(framing.request_id).append("\r\n");
    for (const auto& [name, value] : response.headers) {
        head.append(name).append(": ").append(value).append("\r\n");
    }
    if (framing.length) {
        head.append("Content-Length: ").append(std::to_string(*framing.length)).append("\r\n");
    }
    if (framing.chunked) head.append("Transfer-Encoding: chunked\r\n");
    if (!framing.keep_alive) {
        head.append("Connection: close\r\n");
    } else if (!framing.http11) {
        head.append("Connection: keep-alive\r\n");
    }
    return head.append("\r\n");
}

}  // namespace hearth::api
