#include <Poco/Exception.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/serve/standby/Relay.h"
#include "base/Error.h"
#include "base/Json.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::program;
using namespace hearth::test;

namespace {

const Poco::Timespan kPatience(5, 0);

/// A leader that sends its name first and then sends back the bytes that it receives.
class Leader {
public:
    explicit Leader(std::string name) : name_(std::move(name)) {
        socket_.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
        socket_.listen(16);
        accepting_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
    }
    std::string address() const { return socket_.address().toString(); }

private:
    void accept(const std::stop_token& stop) {
        std::vector<std::jthread> serving;
        while (!stop.stop_requested()) {
            if (!socket_.poll(Poco::Timespan(0, 20'000), Poco::Net::Socket::SELECT_READ)) continue;
            serving.emplace_back([this, client = socket_.acceptConnection()]() mutable {
                client.setReceiveTimeout(kPatience);
                try {
                    client.sendBytes(name_.data(), static_cast<int>(name_.size()));
                    std::vector<char> bytes(64 * 1024);
                    for (;;) {
                        const int n =
                            client.receiveBytes(bytes.data(), static_cast<int>(bytes.size()));
                        if (n <= 0) break;
                        client.sendBytes(bytes.data(), n);
                    }
                    client.shutdownSend();
                } catch (const Poco::Exception&) {  // the relay has ended the connection
                }
            });
        }
    }

    const std::string name_;
    Poco::Net::ServerSocket socket_;
    std::jthread accepting_;
};

struct Client {
    explicit Client(const Relay& relay)
        : socket(Poco::Net::SocketAddress("127.0.0.1", relay.port())) {
        socket.setReceiveTimeout(kPatience);
    }
    void say(const std::string& text) {
        socket.sendBytes(text.data(), static_cast<int>(text.size()));
    }
    /// Reads until `count` bytes have arrived or the stream ends.
    std::string hear(std::size_t count) {
        std::string all;
        std::vector<char> bytes(64 * 1024);
        while (all.size() < count) {
            const int n = socket.receiveBytes(bytes.data(), static_cast<int>(bytes.size()));
            if (n <= 0) break;
            all.append(bytes.data(), static_cast<std::size_t>(n));
        }
        return all;
    }
    /// Returns whether the stream has ended.
    bool ended() {
        try {
            char byte = 0;
            return socket.receiveBytes(&byte, 1) == 0;
        } catch (const Poco::TimeoutException&) {
            return false;
        } catch (const Poco::Exception&) {
            return true;
        }
    }
    Poco::Net::StreamSocket socket;
};

struct Running {
    Running() { relay.start(); }
    metrics::Log log{-1, metrics::LogLevel::Error};
    Relay relay{"127.0.0.1:0", log};
};

}  // namespace

TEST_CASE("bytes are carried to the leader and back, and each end of the stream too",
          "[unit][serve]") {
    Leader leader("a");
    Running at;
    at.relay.aim(leader.address());
    Client client(at.relay);
    client.say("hello");
    CHECK(client.hear(6) == "ahello");
    std::string large(3'000'000, 'x');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 26);
    std::jthread talker([&] {
        client.say(large);
        client.socket.shutdownSend();
    });
    CHECK(client.hear(large.size()) == large);
    CHECK(client.ended());
}

TEST_CASE("while nobody leads, or the leader has gone, clients are told to try again",
          "[unit][serve]") {
    Running at;
    std::string gone;
    {
        Leader leader("a");
        gone = leader.address();
    }
    for (const std::string& aim : {std::string(), gone}) {
        at.relay.aim(aim);
        Client client(at.relay);
        client.say("GET / HTTP/1.1\r\n\r\n");
        client.socket.shutdownSend();
        const std::string answer = client.hear(100'000);
        CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 503 "));
        CHECK_THAT(answer, Catch::Contains("Retry-After: 2"));
        CHECK_THAT(answer, Catch::Contains("Connection: close"));
        const hearth::Json problem = hearth::Json::parse(answer.substr(answer.find("\r\n\r\n")));
        CHECK(problem["type"] == "urn:hearth:unavailable");
        CHECK(problem["errorCode"] == "UNAVAILABLE");
        CHECK(problem["retryAfterSeconds"] == 2);
    }
}

TEST_CASE("a new leader gets the new connections, and those to the old one end", "[unit][serve]") {
    Leader one("1");
    Leader two("2");
    Running at;
    at.relay.aim(one.address());
    Client before(at.relay);
    CHECK(before.hear(1) == "1");
    at.relay.aim(one.address());  // the same address again
    before.say("x");
    CHECK(before.hear(1) == "x");
    at.relay.aim(two.address());
    CHECK(before.ended());
    Client after(at.relay);
    CHECK(after.hear(1) == "2");
}

TEST_CASE("a relay that stops ends its connections and frees its address", "[unit][serve]") {
    Leader leader("a");
    Running at;
    at.relay.aim(leader.address());
    Client client(at.relay);
    CHECK(client.hear(1) == "a");
    const std::string address = "127.0.0.1:" + std::to_string(at.relay.port());
    CHECK_THROWS_AS(Relay(address, at.log).start(), Error);
    at.relay.stop();
    CHECK(client.ended());
    Relay again(address, at.log);
    CHECK_NOTHROW(again.start());
}
