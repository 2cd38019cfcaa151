#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/Fd.h"

namespace hearth::test {

/// Listens on a free port of 127.0.0.1. Throws std::runtime_error if there is none.
class Listener {
public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        if (::bind(fd_.get(), address, size) != 0 || ::listen(fd_.get(), 4) != 0 ||
            ::getsockname(fd_.get(), address, &size) != 0) {
            throw std::runtime_error("no port of 127.0.0.1 can be listened on");
        }
        port_ = ntohs(where.sin_port);
    }

    std::uint16_t port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Blocks until a client connects.
    Fd accept() const { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

private:
    Fd fd_;
    std::uint16_t port_ = 0;
};

}  // namespace hearth::test
