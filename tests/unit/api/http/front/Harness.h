#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "api/http/front/Front.h"
#include "base/http/client/HttpClient.h"

namespace hearth::api {

using Millis = std::chrono::milliseconds;

/// The longest time that a test waits for something that should happen.
constexpr int kPatienceMs = 20'000;

class FunctionHandler final : public Handler {
public:
    explicit FunctionHandler(std::function<Response(Request&)> function)
        : function_(std::move(function)) {}
    Response handle(Request& request) override { return function_(request); }

private:
    std::function<Response(Request&)> function_;
};

inline Response text(std::string body, int status = 200) {
    Response response;
    response.status = status;
    response.headers.add("Content-Type", "text/plain");
    response.body = std::move(body);
    response.route = "/test";
    return response;
}

/// A front on a free port of the loopback.
struct Served {
    explicit Served(std::function<Response(Request&)> function, FrontOptions options = {})
        : log_file(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
          log(log_file.get()),
          handler(std::move(function)) {
        options.listen = "127.0.0.1:0";
        // Sanitizers and the stack frames of tests need more than the server gives its workers.
        options.worker_stack = 1U << 20U;
        front = std::make_unique<Front>(options, handler, metrics, log, clock);
        front->start();
    }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(front->port()); }

    Fd log_file;
    metrics::Log log;
    metrics::Metrics metrics;
    SystemClock clock;
    FunctionHandler handler;
    std::unique_ptr<Front> front;
};

struct Answer {
    int status = 0;
    std::string head;
    std::string body;

    bool has(const std::string& line) const { return head.find(line) != std::string::npos; }
};

/// A client that sends exactly the given bytes.
class Raw {
public:
    /// `from` is the client's own address on the loopback; 0: any.
    explicit Raw(const Served& served, int receive_buffer = 0, in_addr_t from = 0)
        : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (receive_buffer > 0) {
            ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
        }
        const int on = 1;
        ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(from);
        if (from != 0 &&
            ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
            throw std::runtime_error("cannot bind");
        }
        address.sin_port = htons(served.front->port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
            0) {
            throw std::runtime_error("cannot connect");
        }
    }

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;  // the server may have closed already: its answer shows why
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    /// Reads more bytes. Returns false at the end of the connection.
    bool fill() {
        pollfd entry{fd_.get(), POLLIN, 0};
        if (::poll(&entry, 1, kPatienceMs) <= 0) throw std::runtime_error("nothing came");
        char bytes[16384];
        const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
        if (got <= 0) return false;
        buffer_.append(bytes, static_cast<std::size_t>(got));
        return true;
    }
    std::string until(const std::string& mark) {
        std::size_t at = 0;
        while ((at = buffer_.find(mark)) == std::string::npos) {
            if (!fill()) throw std::runtime_error("closed before " + mark + ": " + buffer_);
        }
        const std::string out = buffer_.substr(0, at + mark.size());
        buffer_.erase(0, out.size());
        return out;
    }
    std::string take(std::size_t count) {
        while (buffer_.size() < count) {
            if (!fill()) throw std::runtime_error("closed early");
        }
        const std::string out = buffer_.substr(0, count);
        buffer_.erase(0, count);
        return out;
    }
    /// Reads one answer with a Content-Length or without a body.
    Answer answer(bool head_only = false) {
        Answer answer;
        answer.head = until("\r\n\r\n");
        answer.status = std::stoi(answer.head.substr(9, 3));
        const std::size_t at = answer.head.find("Content-Length: ");
        if (at != std::string::npos && !head_only) {
            answer.body = take(std::stoul(answer.head.substr(at + 16)));
        }
        return answer;
    }
    Answer ask(std::string_view bytes) {
        send(bytes);
        return answer();
    }
    /// Returns all bytes until the server closes the connection.
    std::string rest() {
        while (fill()) {
        }
        return std::exchange(buffer_, {});
    }
    void hangUp() { fd_.reset(); }
    int fd() const { return fd_.get(); }

private:
    Fd fd_;
    std::string buffer_;
};

inline std::string get(const std::string& target, const std::string& more = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

/// Polls with short pauses until `done` is true. Returns false after the patience has run out.
inline bool eventually(const std::function<bool()>& done) {
    const SystemClock clock;
    const TimePoint end = clock.now() + Millis(kPatienceMs);
    while (!done()) {
        if (clock.now() > end) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}

}  // namespace hearth::api
