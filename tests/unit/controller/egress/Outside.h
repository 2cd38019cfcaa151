#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/Fd.h"

namespace hearth::egress {

/// Listens on loopback and answers each connection with a function.
class Outside {
public:
    explicit Outside(std::function<void(int)> answer) : answer_(std::move(answer)) {
        listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(listener_.get(), 16) == 0);
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port = ntohs(address.sin_port);
        thread_ = std::thread([this] {
            while (true) {
                const Fd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                if (!accepted) return;
                ++connections;
                answer_(accepted.get());
            }
        });
    }
    ~Outside() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        thread_.join();
    }
    std::string authority() const { return "127.0.0.1:" + std::to_string(port); }

    std::uint16_t port = 0;
    std::atomic<int> connections{0};

private:
    std::function<void(int)> answer_;
    Fd listener_;
    std::thread thread_;
};

inline std::string receiveUntil(int fd, std::string_view end) {
    std::string out;
    char piece[4'096];
    while (out.find(end) == std::string::npos) {
        const ssize_t n = ::recv(fd, piece, sizeof(piece), 0);
        if (n <= 0) break;
        out.append(piece, static_cast<std::size_t>(n));
    }
    return out;
}

inline void say(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
}

}  // namespace hearth::egress
