#include "tests/support/kubernetes/HttpWire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::test {
namespace {

SeenRequest parseHead(std::string_view head) {
    SeenRequest request;
    const std::size_t first = head.find(' ');
    const std::size_t second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    const std::size_t mark = request.target.find('?');
    request.path = percentDecode(request.target.substr(0, mark)).value();
    std::string_view rest = request.target;
    rest.remove_prefix(mark == std::string::npos ? rest.size() : mark + 1);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('&'), rest.size());
        const std::string_view pair = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (pair.find(';') != std::string_view::npos) continue;  // like a Go server
        const QueryParams params = parseQuery(pair).value();
        for (const auto& [name, value] : params) request.query[name] = value;
    }
    std::size_t at = head.find("\r\n") + 2;
    while (at < head.size()) {
        const std::size_t end = std::min(head.find("\r\n", at), head.size());
        const std::string_view line = head.substr(at, end - at);
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos) {
            request.headers[toLower(line.substr(0, colon))] = trim(line.substr(colon + 1));
        }
        at = end + 2;
    }
    return request;
}

}  // namespace

std::string SeenRequest::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
}

std::string SeenRequest::param(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
}

ServedConnection::ServedConnection(Fd fd, SSL_CTX* tls)
    : fd_(std::move(fd)), ssl_(nullptr, &::SSL_free) {
    if (tls == nullptr) return;
    ssl_.reset(::SSL_new(tls));
    ::SSL_set_fd(ssl_.get(), fd_.get());
    if (::SSL_accept(ssl_.get()) != 1) throw std::runtime_error("no TLS");
}

long ServedConnection::readSome(char* out, std::size_t size) {
    if (ssl_) return ::SSL_read(ssl_.get(), out, static_cast<int>(size));
    return ::recv(fd_.get(), out, size, 0);
}

std::optional<SeenRequest> ServedConnection::request() {
    char piece[4096];
    std::size_t end = 0;
    while ((end = unread_.find("\r\n\r\n")) == std::string::npos) {
        const long n = readSome(piece, sizeof piece);
        if (n <= 0) return std::nullopt;
        unread_.append(piece, static_cast<std::size_t>(n));
    }
    SeenRequest request = parseHead(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 4);
    const std::string length = request.header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (unread_.size() < size) {
        const long n = readSome(piece, sizeof piece);
        if (n <= 0) return std::nullopt;
        unread_.append(piece, static_cast<std::size_t>(n));
    }
    request.body = unread_.substr(0, size);
    unread_.erase(0, size);
    return request;
}

bool ServedConnection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const long n = ssl_ ? ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                            : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void ServedConnection::cut() {
    ::shutdown(fd_.get(), SHUT_RDWR);
}

bool ServedConnection::gone() const {
    pollfd polled{fd_.get(), POLLRDHUP, 0};
    return ::poll(&polled, 1, 0) > 0;
}

HttpListener::HttpListener(std::shared_ptr<SSL_CTX> tls, Serve serve)
    : tls_(std::move(tls)), serve_(std::move(serve)) {
    ::signal(SIGPIPE, SIG_IGN);  // needed because OpenSSL writes without MSG_NOSIGNAL
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    socklen_t size = sizeof where;
    if (::bind(socket_.get(), address, size) != 0 || ::listen(socket_.get(), 64) != 0 ||
        ::getsockname(socket_.get(), address, &size) != 0) {
        throwErrno("listen");
    }
    port_ = ntohs(where.sin_port);
    acceptor_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
}

HttpListener::~HttpListener() {
    shut();
    threads_.clear();
}

std::string HttpListener::url() const {
    return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

void HttpListener::shut() {
    if (acceptor_.joinable()) {
        acceptor_.request_stop();
        ::shutdown(socket_.get(), SHUT_RDWR);  // ends accept()
        acceptor_.join();
        socket_.reset();
    }
    cutAll();
}

void HttpListener::cutAll() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, fd] : open_) ::shutdown(fd, SHUT_RDWR);
}

void HttpListener::accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Fd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) continue;
        const int on = 1;
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const std::lock_guard lock(mutex_);
        const int number = ++number_;
        open_[number] = fd.get();
        threads_.emplace_back([this, number, owned = std::make_shared<Fd>(std::move(fd))] {
            // Kept open until it is out of the list: its number may be reused afterwards.
            std::unique_ptr<ServedConnection> connection;
            try {
                connection = std::make_unique<ServedConnection>(std::move(*owned), tls_.get());
                serve_(*connection);
            } catch (const std::exception&) {  // the client went away in the handshake
                connection.reset();
            }
            const std::lock_guard mine(mutex_);
            open_.erase(number);
            connection.reset();
        });
    }
}

}  // namespace hearth::test
