#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/docker/engine/EngineAddress.h"

namespace hearth::docker_test {

struct Seen {
    std::string method;
    std::string target;
    std::string body;
};

inline std::string answer(int status, const std::string& body, const std::string& head = "") {
    return "HTTP/1.1 " + std::to_string(status) +
           " Words\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + head + "\r\n" +
           body;
}

/// Returns the answer of an Engine that refuses a request.
inline std::string refusal(int status, const std::string& message) {
    return answer(status, dumpJson({{"message", message}}));
}

/// A Docker Engine as a test scripts it. Each connection takes one request and gets the bytes of
/// `reply`. An empty reply keeps the connection open and silent until the end.
class FakeEngine {
public:
    using Reply = std::function<std::string(const Seen&)>;

    explicit FakeEngine(Reply reply) : reply_(std::move(reply)) {
        std::string name = (std::filesystem::temp_directory_path() / "engine-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        folder_ = name;
        socket_ = pool::listenAt(path(), 0600);
        thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
    ~FakeEngine() {
        thread_.request_stop();
        thread_.join();
        std::error_code error;
        std::filesystem::remove_all(folder_, error);
    }
    FakeEngine(const FakeEngine&) = delete;
    FakeEngine& operator=(const FakeEngine&) = delete;

    std::string path() const { return folder_ + "/socket"; }
    pool::docker::EngineAddress address() const {
        pool::docker::EngineAddress address;
        address.socket = path();
        return address;
    }
    std::vector<Seen> seen() {
        const std::lock_guard lock(mutex_);
        return seen_;
    }

private:
    static bool waits(int fd, int ms) {
        pollfd polled{fd, POLLIN, 0};
        return ::poll(&polled, 1, ms) > 0;
    }

    void serve(const std::stop_token& stop) {
        std::vector<Fd> silent;
        while (!stop.stop_requested()) {
            if (!waits(socket_.get(), 5)) continue;
            Fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!connection) continue;
            const Seen request = read(connection);
            {
                const std::lock_guard lock(mutex_);
                seen_.push_back(request);
            }
            const std::string reply = reply_(request);
            if (reply.empty()) {
                silent.push_back(std::move(connection));
                continue;
            }
            std::size_t at = 0;
            while (at < reply.size()) {
                const ssize_t n =
                    ::send(connection.get(), reply.data() + at, reply.size() - at, MSG_NOSIGNAL);
                if (n <= 0) break;
                at += static_cast<std::size_t>(n);
            }
        }
    }

    static Seen read(const Fd& connection) {
        std::string text;
        const auto more = [&] {
            char piece[4096];
            if (!waits(connection.get(), 2000)) return false;
            const ssize_t n = ::recv(connection.get(), piece, sizeof piece, 0);
            if (n <= 0) return false;
            text.append(piece, static_cast<std::size_t>(n));
            return true;
        };
        while (text.find("\r\n\r\n") == std::string::npos && more()) continue;
        const std::size_t end = text.find("\r\n\r\n");
        if (end == std::string::npos) return {};
        Seen seen;
        const std::size_t first = text.find(' ');
        seen.method = text.substr(0, first);
        seen.target = text.substr(first + 1, text.find(' ', first + 1) - first - 1);
        if (const std::size_t at = text.find("Content-Length: "); at < end) {
            const std::size_t size = std::stoul(text.substr(at + 16));
            while (text.size() < end + 4 + size && more()) continue;
        } else if (text.find("chunked") < end) {
            while (!text.ends_with("0\r\n\r\n") && more()) continue;
        }
        seen.body = text.substr(end + 4);
        return seen;
    }

    Reply reply_;
    std::string folder_;
    Fd socket_;
    std::mutex mutex_;
    std::vector<Seen> seen_;  // guarded by mutex_
    std::jthread thread_;
};

inline TimePoint soon(std::chrono::milliseconds span = std::chrono::seconds(5)) {
    return SystemClock().now() + span;
}

/// Returns the answer to the first request of every client.
inline std::string pong(const char* version = "1.41") {
    return answer(200, "OK", std::string("Api-Version: ") + version + "\r\n");
}

}  // namespace hearth::docker_test
