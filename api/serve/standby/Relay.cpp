#include "api/serve/standby/Relay.h"

#include <Poco/Net/NetException.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <Poco/Net/TCPServer.h>
#include <Poco/Net/TCPServerConnectionFactory.h>
#include <Poco/ThreadPool.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "api/http/Problem.h"
#include "api/http/front/ResponseHead.h"
#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"
#include "base/Mutex.h"

namespace hearth::program {
namespace {

/// The first byte of every TLS connection.
constexpr char kTlsHandshake = 0x16;
constexpr int kMostConnections = 512;
constexpr int kWaiting = 64;
constexpr int kStack = 128 * 1024;
constexpr std::size_t kPiece = 32UL * 1024;
constexpr long kConnectSeconds = 3;
constexpr long kAnswerSeconds = 2;
/// The most pieces that are read from a client that is refused.
constexpr int kMostPieces = 16;
constexpr std::chrono::seconds kTryAgain{2};

/// The time in which one replica leads. over() becomes readable at its end, for every watcher.
class Term {
public:
    explicit Term(std::string address)
        : address_(std::move(address)), over_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!over_) throwErrno("eventfd");
    }
    const std::string& address() const { return address_; }
    int over() const { return over_.get(); }
    void end() const {
        const std::uint64_t one = 1;
        static_cast<void>(::write(over_.get(), &one, sizeof(one)));
    }

private:
    const std::string address_;
    const Fd over_;
};

/// The replica that connections go to now.
class Target {
public:
    std::shared_ptr<Term> get() const {
        const MutexLock lock(mutex_);
        return term_;
    }
    void set(const std::string& address) {
        const MutexLock lock(mutex_);
        if (term_->address() == address) return;
        term_->end();
        term_ = std::make_shared<Term>(address);
    }
    void end() {
        const MutexLock lock(mutex_);
        term_->end();
    }

private:
    mutable Mutex mutex_;
    std::shared_ptr<Term> term_ HEARTH_GUARDED_BY(mutex_) = std::make_shared<Term>("");
};

/// One direction of a connection, with the bytes that were read and are not written yet.
struct Flow {
    int from;
    int to;
    std::array<char, kPiece> bytes;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool ended = false;  ///< no more bytes come
    bool told = false;   ///< the other side knows that

    bool empty() const { return begin == end; }
    /// False if the connection has failed.
    bool move(bool readable, bool writable) {
        if (readable && empty() && !ended) {
            const ssize_t n = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
            if (n == 0) ended = true;
            begin = 0;
            end = n > 0 ? static_cast<std::size_t>(n) : 0;
            writable = true;
        }
        if (writable && !empty()) {
            const ssize_t n =
                ::send(to, bytes.data() + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
            if (n > 0) begin += static_cast<std::size_t>(n);
        }
        if (ended && empty() && !std::exchange(told, true)) ::shutdown(to, SHUT_WR);
        return true;
    }
};

/// Carries bytes until both directions have ended, one fails, or the term ends.
void carry(int client, int leader, const Term& term) {
    auto up = std::make_unique<Flow>(Flow{client, leader, {}});
    auto down = std::make_unique<Flow>(Flow{leader, client, {}});
    while (!up->told || !down->told) {
        const auto events = [](const Flow& reads, const Flow& writes) {
            return static_cast<short>((reads.empty() && !reads.ended ? POLLIN : 0) |
                                      (writes.empty() ? 0 : POLLOUT));
        };
        // Leaves out a side without events: poll() would report its end again and again.
        const auto watch = [](int fd, short what) { return pollfd{what == 0 ? -1 : fd, what, 0}; };
        std::array<pollfd, 3> watched{watch(client, events(*up, *down)),
                                      watch(leader, events(*down, *up)),
                                      watch(term.over(), POLLIN)};
        if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
        if (watched[2].revents != 0) return;
        const auto in = [&](std::size_t i) {
            return (watched[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
        };
        const auto out = [&](std::size_t i) {
            return (watched[i].revents & (POLLOUT | POLLERR)) != 0;
        };
        if (!up->move(in(0), out(1)) || !down->move(in(1), out(0))) return;
    }
}

class Carrier final : public Poco::Net::TCPServerConnection {
public:
    Carrier(const Poco::Net::StreamSocket& client, const Target& target)
        : TCPServerConnection(client), target_(target) {}

    void run() override {
        const std::shared_ptr<Term> term = target_.get();
        try {
            if (term->address().empty()) return answer();
            Poco::Net::StreamSocket leader;
            try {
                leader.connect(Poco::Net::SocketAddress(term->address()),
                               Poco::Timespan(kConnectSeconds, 0));
            } catch (const Poco::Exception&) {  // the leader is gone, and no other leads yet
                return answer();
            }
            leader.setNoDelay(true);
            socket().setNoDelay(true);
            carry(socket().impl()->sockfd(), leader.impl()->sockfd(), *term);
        } catch (const std::exception&) {  // the connection ends; its client sees that
        }
    }

private:
    /// Refuses the client. Reads its request first, because closing at once could lose the answer.
    void answer() {
        const std::string id = newId("req_");
        const api::Response refusal =
            api::problem(Error(ErrorCode::Unavailable, "no replica of this server leads now")
                             .hint("try again; keyed calls are safe to repeat")
                             .retryAfter(kTryAgain),
                         {"", id, ""});
        const auto& body = std::get<std::string>(refusal.body);
        const std::string date = api::DateText().at(SystemClock().wall());
        const std::string text =
            api::renderHead(
                refusal,
                {.request_id = id, .date = date, .length = body.size(), .keep_alive = false}) +
            body;
        Poco::Net::StreamSocket& client = socket();
        client.setReceiveTimeout(Poco::Timespan(kAnswerSeconds, 0));
        std::array<char, 4096> request;
        const auto heard = [&] {
            return client.receiveBytes(request.data(), static_cast<int>(request.size())) > 0;
        };
        // A TLS client would not understand the answer, so its connection is only closed.
        if (!heard() || request.front() == kTlsHandshake) return;
        client.sendBytes(text.data(), static_cast<int>(text.size()));
        client.shutdownSend();
        for (int pieces = 0; pieces < kMostPieces && heard(); ++pieces) {
        }
    }

    const Target& target_;
};

class Carriers final : public Poco::Net::TCPServerConnectionFactory {
public:
    explicit Carriers(const Target& target) : target_(target) {}
    Poco::Net::TCPServerConnection* createConnection(
        const Poco::Net::StreamSocket& client) override {
        return new Carrier(client, target_);  // Poco owns it
    }

private:
    const Target& target_;
};

}  // namespace

struct Relay::Inner {
    Inner(std::string where, metrics::Log& its_log) : listen(std::move(where)), log(its_log) {}

    const std::string listen;
    metrics::Log& log;
    Target target;
    Poco::ThreadPool threads{"relay", 2, kMostConnections, 60, kStack};
    Poco::Net::ServerSocket socket;
    std::unique_ptr<Poco::Net::TCPServer> server;
};

Relay::Relay(const std::string& listen, metrics::Log& log)
    : inner_(std::make_unique<Inner>(listen, log)) {}

Relay::~Relay() {
    stop();
}

void Relay::start() {
    Inner& in = *inner_;
    try {
        in.socket.bind(Poco::Net::SocketAddress(in.listen), true, false);
        in.socket.listen(kWaiting);
    } catch (const Poco::Exception& e) {
        throw Error(ErrorCode::Unavailable,
                    "cannot listen on " + in.listen + " (--listen): " + e.displayText())
            .hint("choose another address with --listen");
    }
    Poco::Net::TCPServerParams::Ptr params = new Poco::Net::TCPServerParams;
    params->setMaxThreads(kMostConnections);
    params->setMaxQueued(kWaiting);
    in.server = std::make_unique<Poco::Net::TCPServer>(new Carriers(in.target), in.threads,
                                                       in.socket, params);
    in.server->start();
    in.log.info("relay.listening", {{"address", in.socket.address().toString()}});
}

void Relay::aim(const std::string& address) {
    inner_->target.set(address);
}

std::string Relay::target() const {
    return inner_->target.get()->address();
}

void Relay::stop() {
    Inner& in = *inner_;
    if (!in.server) return;
    in.server->stop();
    in.target.end();
    in.threads.joinAll();
    in.server.reset();
    in.socket.close();
}

std::uint16_t Relay::port() const {
    return inner_->socket.address().port();
}

}  // namespace hearth::program
