#include "api/http/Client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLine = 16U << 10U;
constexpr std::size_t kMaxHeaders = 256;
constexpr std::size_t kReadSize = 64U << 10U;

/// The connection was lost; `Client` decides whether the request is sent once more.
class Lost : public Error {
public:
    explicit Lost(const std::string& message) : Error(ErrorCode::Unavailable, message) {}
};

Error tooSlow() {
    return {ErrorCode::Deadline, "the server did not answer in time"};
}
Error malformed(const std::string& what) {
    return {ErrorCode::Internal, "the server's answer is not HTTP: " + what};
}

int pollTimeout(milliseconds timeout) {
    return timeout.count() <= 0 ? -1 : static_cast<int>(timeout.count());
}

/// A connected socket, blocking again; nothing and `error` where it failed.
Fd connectTo(int family, const sockaddr* address, socklen_t size, milliseconds timeout,
             int& error) {
    Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) {
        error = errno;
        return {};
    }
    if (::connect(fd.get(), address, size) != 0) {
        error = errno;
        if (error != EINPROGRESS && error != EINTR) return {};
        pollfd entry{fd.get(), POLLOUT, 0};
        const int ready = ::poll(&entry, 1, pollTimeout(timeout));
        error = ready == 0 ? ETIMEDOUT : errno;
        if (ready <= 0) return {};
        socklen_t length = sizeof(error);
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
        if (error != 0) return {};
    }
    const int flags = ::fcntl(fd.get(), F_GETFL);
    ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);
    const int on = 1;
    if (family != AF_UNIX) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

bool idempotent(const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
           method == "OPTIONS";
}

template <typename T>
bool parseNumber(std::string_view text, int base, T& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return error == std::errc() && end == text.data() + text.size();
}

void checkHeaderText(std::string_view text) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            throw Error(ErrorCode::InvalidArgument, "a request header holds a control character");
        }
    }
}

}  // namespace

std::optional<std::string> ClientResponse::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (equalsIgnoreCase(key, name)) return value;
    }
    return std::nullopt;
}

Client::Client(std::string url, ClientOptions options)
    : url_(std::move(url)), options_(std::move(options)) {
    std::string_view rest = url_;
    if (rest.starts_with("unix://")) {
        unix_path_ = rest.substr(7);
        host_header_ = "localhost";
        if (unix_path_.empty() || unix_path_.size() >= sizeof(sockaddr_un::sun_path)) {
            throw Error(ErrorCode::InvalidArgument, "bad socket path in " + url_);
        }
        return;
    }
    if (!rest.starts_with("http://")) {
        throw Error(ErrorCode::InvalidArgument, "not an http:// or unix:// URL: " + url_)
            .hint(
                "write http://HOST:PORT with nothing behind it, or unix:///PATH; TLS ends in a "
                "proxy");
    }
    rest.remove_prefix(7);
    const std::size_t slash = rest.find('/');
    std::string_view authority = rest.substr(0, slash);
    if (slash != std::string_view::npos) base_path_ = rest.substr(slash);
    while (base_path_.ends_with('/')) base_path_.pop_back();
    host_header_ = authority;
    const std::size_t bracket = authority.rfind(']');
    const std::size_t colon = authority.rfind(':');
    port_ = "80";
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        port_ = authority.substr(colon + 1);
        authority = authority.substr(0, colon);
    }
    if (authority.size() > 2 && authority.front() == '[' && authority.back() == ']') {
        authority = authority.substr(1, authority.size() - 2);
    }
    host_ = authority;
    std::uint16_t number = 0;
    if (host_.empty() || host_.find('@') != std::string::npos || !parseNumber(port_, 10, number)) {
        throw Error(ErrorCode::InvalidArgument, "bad host or port in " + url_);
    }
}

ClientResponse Client::request(const ClientRequest& request) {
    return exchange(request, nullptr, {});
}

ClientResponse Client::get(const std::string& target, ClientHeaders headers) {
    ClientRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return exchange(request, nullptr, {});
}

ClientResponse Client::post(const std::string& target, std::string body,
                            const std::string& content_type, ClientHeaders headers) {
    ClientRequest request;
    request.method = "POST";
    request.target = target;
    request.headers = std::move(headers);
    request.headers.emplace_back("Content-Type", content_type);
    request.body = std::move(body);
    return exchange(request, nullptr, {});
}

ClientResponse Client::stream(const ClientRequest& request, const BodySink& sink,
                              const std::function<bool(const ClientResponse&)>& head) {
    return exchange(request, &sink, head);
}

void Client::close() noexcept {
    {
        const std::lock_guard lock(open_->mutex);
        open_->fd = -1;
    }
    fd_.reset();
    applied_ = Wait(-1);
    buffer_.clear();
    taken_ = 0;
}

void Client::interrupt() noexcept {
    const std::lock_guard lock(open_->mutex);
    if (open_->fd >= 0) ::shutdown(open_->fd, SHUT_RDWR);
}

void Client::connect() {
    close();
    int error = 0;
    if (!unix_path_.empty()) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        unix_path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
        fd_ = connectTo(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address),
                        options_.connect_timeout, error);
    } else {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
        addrinfo* found = nullptr;
        const int failure = ::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found);
        if (failure != 0) {
            throw Error(ErrorCode::Unavailable,
                        "cannot resolve " + host_ + ": " + ::gai_strerror(failure));
        }
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
        for (const addrinfo* entry = found; entry != nullptr && !fd_; entry = entry->ai_next) {
            fd_ = connectTo(entry->ai_family, entry->ai_addr, entry->ai_addrlen,
                            options_.connect_timeout, error);
        }
    }
    if (!fd_) {
        throw Error(ErrorCode::Unavailable,
                    "cannot connect to " + url_ + ": " + std::generic_category().message(error));
    }
    const std::lock_guard lock(open_->mutex);
    open_->fd = fd_.get();
}

bool Client::stale() const {
    if (taken_ < buffer_.size()) return true;  // an answer nobody asked for
    pollfd entry{fd_.get(), POLLIN | POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) != 0;
}

void Client::applyTimeout(Wait timeout) {
    if (timeout == applied_) return;
    timeval value{};
    value.tv_sec = timeout.count() / 1000;
    value.tv_usec = (timeout.count() % 1000) * 1000;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value));
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &value, sizeof(value));
    applied_ = timeout;
}

ClientResponse Client::exchange(const ClientRequest& request, const BodySink* sink,
                                const std::function<bool(const ClientResponse&)>& head) {
    const Wait timeout = request.timeout.value_or(options_.timeout);
    if (fd_ && stale()) close();
    bool kept = static_cast<bool>(fd_);
    while (true) {
        if (!fd_) connect();
        applyTimeout(timeout);
        answered_ = false;
        try {
            // A server that refuses a long body closes before it has all of it: then it has said
            // why, and that is read; where it has not, reading tells of the loss.
            const bool sent = sendWhole(request, timeout);
            ClientResponse response;
            bool keep = true;
            readHead(response, timeout, keep);
            keep = keep && sent;
            const bool wanted = !head || head(response);
            const bool whole = wanted && readBody(request, response, sink, timeout, keep);
            if (!whole || !keep) close();
            return response;
        } catch (const Lost&) {
            close();
            // A server may close a kept connection at the very moment it is used again.
            if (!kept || answered_ || request.source || !idempotent(request.method)) throw;
            kept = false;
        } catch (...) {
            close();
            throw;
        }
    }
}

std::string Client::requestHead(const ClientRequest& request) const {
    for (const char c : request.method + base_path_ + request.target) {
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F) {
            throw Error(ErrorCode::InvalidArgument, "the method or target holds a blank");
        }
    }
    std::string head = request.method + " " + base_path_ + request.target +
                       " HTTP/1.1\r\nHost: " + host_header_ + "\r\n";
    const auto append = [&head](const ClientHeaders& headers) {
        for (const auto& [name, value] : headers) {
            checkHeaderText(name);
            checkHeaderText(value);
            head.append(name).append(": ").append(value).append("\r\n");
        }
    };
    append(options_.headers);
    append(request.headers);
    if (request.source && !request.source_length) {
        head.append("Transfer-Encoding: chunked\r\n");
    } else if (request.source || !request.body.empty() ||
               (request.method != "GET" && request.method != "HEAD")) {
        const std::uint64_t length = request.source ? *request.source_length : request.body.size();
        head.append("Content-Length: ").append(std::to_string(length)).append("\r\n");
    }
    return head.append("\r\n");
}

bool Client::sendWhole(const ClientRequest& request, Wait timeout) {
    try {
        sendRequest(request, timeout);
        return true;
    } catch (const Lost&) {
        return false;
    }
}

void Client::sendRequest(const ClientRequest& request, Wait timeout) {
    const std::string head = requestHead(request);
    if (!request.source) {
        sendAll(head, request.body, timeout);
        return;
    }
    sendAll(head, {}, timeout);
    std::string piece(kReadSize, '\0');
    while (true) {
        const std::size_t got = request.source(piece.data(), piece.size());
        if (request.source_length) {
            if (got == 0) return;
            sendAll({}, {piece.data(), got}, timeout);
            continue;
        }
        std::array<char, 20> size{};
        const auto end = std::to_chars(size.data(), size.data() + size.size(), got, 16);
        std::string line(size.data(), end.ptr);
        sendAll(line.append("\r\n"), std::string(piece, 0, got).append("\r\n"), timeout);
        if (got == 0) return;
    }
}

void Client::sendAll(std::string_view head, std::string_view body, Wait) {
    while (!head.empty() || !body.empty()) {
        std::array<iovec, 2> parts{{{const_cast<char*>(head.data()), head.size()},
                                    {const_cast<char*>(body.data()), body.size()}}};
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) throw tooSlow();
            throw Lost("the connection to " + url_ + " was lost");
        }
        const auto count = static_cast<std::size_t>(sent);
        const std::size_t of_head = std::min(count, head.size());
        head.remove_prefix(of_head);
        body.remove_prefix(count - of_head);
    }
}

bool Client::fill(Wait timeout) {
    applyTimeout(timeout);
    if (taken_ > 0) {
        buffer_.erase(0, taken_);
        taken_ = 0;
    }
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<char[]>(kReadSize);
    ssize_t got = 0;
    do {
        got = ::recv(fd_.get(), scratch_.get(), kReadSize, 0);
    } while (got < 0 && errno == EINTR);
    const int error = errno;
    if (got > 0) buffer_.append(scratch_.get(), static_cast<std::size_t>(got));
    if (got > 0) answered_ = true;
    if (got >= 0) return got > 0;
    if (error == EAGAIN) throw tooSlow();
    throw Lost("the connection to " + url_ + " was lost");
}

std::string Client::readLine(Wait timeout) {
    while (true) {
        const std::size_t end = buffer_.find("\r\n", taken_);
        if (end != std::string::npos) {
            std::string line = buffer_.substr(taken_, end - taken_);
            taken_ = end + 2;
            return line;
        }
        if (buffer_.size() - taken_ > kMaxLine) throw malformed("a line is too long");
        if (!fill(timeout)) throw Lost("the server closed the connection");
    }
}

void Client::readHead(ClientResponse& response, Wait timeout, bool& keep) {
    do {
        response = {};
        const std::string line = readLine(timeout);
        if (line.size() < 12 || !line.starts_with("HTTP/1.") ||
            !parseNumber(std::string_view(line).substr(9, 3), 10, response.status)) {
            throw malformed("the status line");
        }
        keep = line[7] == '1';
        for (std::string field = readLine(timeout); !field.empty(); field = readLine(timeout)) {
            const std::size_t colon = field.find(':');
            if (colon == std::string::npos) throw malformed("a header field");
            if (response.headers.size() >= kMaxHeaders) throw malformed("too many header fields");
            response.headers.emplace_back(field.substr(0, colon),
                                          trim(std::string_view(field).substr(colon + 1)));
        }
    } while (response.status >= 100 && response.status < 200 && response.status != 101);
    if (const auto connection = response.header("Connection")) {
        if (equalsIgnoreCase(*connection, "close")) keep = false;
        if (equalsIgnoreCase(*connection, "keep-alive")) keep = true;
    }
}

bool Client::readBody(const ClientRequest& request, ClientResponse& response, const BodySink* sink,
                      Wait timeout, bool& keep) {
    if (request.method == "HEAD" || response.status == 204 || response.status == 304) return true;
    if (const auto coding = response.header("Transfer-Encoding")) {
        if (!equalsIgnoreCase(*coding, "chunked")) throw malformed("an unknown transfer coding");
        return readChunked(response, sink, timeout);
    }
    if (const auto length = response.header("Content-Length")) {
        std::uint64_t bytes = 0;
        if (!parseNumber(*length, 10, bytes)) throw malformed("the content length");
        return readCounted(bytes, response, sink, timeout);
    }
    keep = false;
    while (true) {
        if (taken_ < buffer_.size()) {
            const std::string_view piece = std::string_view(buffer_).substr(taken_);
            taken_ = buffer_.size();
            if (!deliver(piece, response, sink)) return false;
        }
        if (!fill(timeout)) return true;
    }
}

bool Client::readCounted(std::uint64_t length, ClientResponse& response, const BodySink* sink,
                         Wait timeout) {
    while (length > 0) {
        if (taken_ == buffer_.size() && !fill(timeout)) {
            throw Lost("the answer was cut off");
        }
        const std::size_t size =
            static_cast<std::size_t>(std::min<std::uint64_t>(length, buffer_.size() - taken_));
        const std::string_view piece = std::string_view(buffer_).substr(taken_, size);
        taken_ += size;
        length -= size;
        if (!deliver(piece, response, sink)) return false;
    }
    return true;
}

bool Client::readChunked(ClientResponse& response, const BodySink* sink, Wait timeout) {
    while (true) {
        const std::string line = readLine(timeout);
        std::uint64_t size = 0;
        if (!parseNumber(std::string_view(line).substr(0, line.find(';')), 16, size)) {
            throw malformed("a chunk size");
        }
        if (size == 0) break;
        if (!readCounted(size, response, sink, timeout)) return false;
        if (!readLine(timeout).empty()) throw malformed("the end of a chunk");
    }
    while (!readLine(timeout).empty()) {
    }
    return true;
}

bool Client::deliver(std::string_view piece, ClientResponse& response, const BodySink* sink) const {
    if (sink != nullptr) return (*sink)(piece);
    if (response.body.size() + piece.size() > options_.max_body) {
        throw Error(ErrorCode::PayloadTooLarge, "the server's answer is too large");
    }
    response.body.append(piece);
    return true;
}

}  // namespace hearth::api
