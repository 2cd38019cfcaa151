#include "pool/agent/program/egress/EgressPort.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/egress/CarriedStream.h"

namespace hearth::agent {

namespace {
constexpr int kBacklog = 128;
constexpr std::uint32_t kMostCredit = 4'096;
/// The time to take a connection: the server does so when one of its threads is free.
constexpr std::int64_t kTakenWithinNs = 60'000'000'000;
}  // namespace

/// The stream on which connections are handed over.
class EgressPort::Line final : public Stream {
public:
    Line(EgressPort& port, Connection& connection, std::uint32_t id)
        : port_(port), connection_(connection), id_(id) {}
    bool passes() const { return connection_.passes(); }
    void data(std::string_view) override {}
    void end() override {}
    void credit(std::uint32_t more) override {
        room_ = room_ > kMostCredit ? room_ : room_ + std::min(more, kMostCredit);
        port_.watch();
    }
    void detach() override {
        if (port_.line_ != this) return;
        port_.line_ = nullptr;
        port_.announced_.clear();  // the next server does not know their numbers
        port_.watch();
    }
    void pump() override { port_.watch(); }

    bool takes() const { return room_ > 0 && connection_.roomy(); }
    void pass(Fd accepted) {
        --room_;
        JsonValue note = JsonValue::object();
        note.set("connection", true);
        connection_.sendPassing(FrameType::Note, id_, note.dump(), std::move(accepted));
        connection_.flush();
    }
    void announce(std::int64_t number) {
        --room_;
        JsonValue note = JsonValue::object();
        note.set("connection", number);
        connection_.note(id_, note);
        connection_.flush();
    }
    void replaced() { connection_.fail(id_, "CANCELLED", "another stream takes the connections"); }

private:
    EgressPort& port_;
    Connection& connection_;
    const std::uint32_t id_;
    std::uint32_t room_ = 0;
};

EgressPort::~EgressPort() {
    if (watched_) loop_.remove(listener_.get());
}

void EgressPort::open(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    const std::int64_t port = body["port"].integer();
    if (port < 1 || port > 65'535) return connection.fail(stream, "BAD_REQUEST", "no such port");
    if (!connection.passes() && !body["carry"].boolean()) {
        return connection.fail(stream, "UNSUPPORTED", "connections cannot be handed over to you");
    }
    if (const char* why = listen(static_cast<std::uint16_t>(port))) {
        return connection.fail(stream, "UNAVAILABLE", why);
    }
    if (line_ != nullptr) {
        Line& before = *line_;
        line_ = nullptr;
        announced_.clear();
        before.replaced();
    }
    auto line = std::make_unique<Line>(*this, connection, stream);
    line_ = line.get();
    connection.open(stream, std::move(line));
    JsonValue note = JsonValue::object();
    note.set("port", port);
    connection.note(stream, note);
}

const char* EgressPort::listen(std::uint16_t port) {
    if (listener_ && port_ == port) return nullptr;
    Fd made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made) return "there is no socket";
    const int yes = 1;
    setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return errno == EADDRINUSE ? "another program has the port" : "the port cannot be bound";
    }
    if (::listen(made.get(), kBacklog) != 0) return "the port cannot be listened to";
    if (watched_) loop_.remove(listener_.get());
    watched_ = false;
    listener_ = std::move(made);
    port_ = port;
    return nullptr;
}

void EgressPort::watch() {
    const bool wanted = listener_ && line_ != nullptr && line_->takes();
    if (wanted == watched_) return;
    watched_ = wanted;
    if (wanted) {
        watched_ = loop_.add(listener_.get(), EPOLLIN, *this);
    } else {
        loop_.remove(listener_.get());
    }
}

void EgressPort::ready(std::uint32_t) {
    // Bounded, as all loops over things that tenants can make.
    for (int i = 0; i < 16 && line_ != nullptr && line_->takes(); ++i) {
        Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!accepted) break;
        const int yes = 1;
        setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        handOver(std::move(accepted));
    }
    watch();
}

void EgressPort::handOver(Fd accepted) {
    if (line_->passes()) return line_->pass(std::move(accepted));
    const std::int64_t number = ++last_announced_;
    announced_[number] = {std::move(accepted), nowNs() + kTakenWithinNs};
    line_->announce(number);
}

void EgressPort::carry(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    const auto found = announced_.find(body["connection"].integer());
    if (found == announced_.end()) {
        return connection.fail(stream, "NOT_FOUND", "no such connection waits");
    }
    auto carried =
        std::make_unique<CarriedStream>(loop_, connection, stream, std::move(found->second.socket));
    announced_.erase(found);
    CarriedStream& started = *carried;
    connection.open(stream, std::move(carried));
    started.start();
}

std::int64_t EgressPort::nextTickNs() const {
    return announced_.empty() ? INT64_MAX : announced_.begin()->second.until_ns;
}

void EgressPort::tick(std::int64_t now_ns) {
    while (!announced_.empty() && announced_.begin()->second.until_ns <= now_ns) {
        announced_.erase(announced_.begin());
    }
}

}  // namespace hearth::agent
