#include "pool/agent/client/CarriedConnection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth::agent {
namespace {

/// Small compared to the bytes that may be queued on a connection.
constexpr std::size_t kPiece = 32U << 10U;
/// The pieces that one connection moves before others have their turn.
constexpr int kPiecesInARow = 8;
constexpr std::size_t kGrantFrom = kInitialCredit / 4;
/// The delay before a busy connection is tried again.
constexpr std::chrono::milliseconds kTryAgain{2};
/// The delay after the agent has read nothing for kStuck.
constexpr std::chrono::seconds kStuck{1};
constexpr std::chrono::milliseconds kTryLater{100};
/// The time for the rest of an answer after the gateway has closed.
constexpr std::chrono::minutes kLastBytes{5};

bool later() {
    return errno == EAGAIN || errno == EINTR;
}

}  // namespace

std::pair<std::shared_ptr<CarriedConnection>, Fd> CarriedConnection::make(
    Poller& poller, std::shared_ptr<AgentConnection> agent, std::shared_ptr<void> until_over) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throwErrno("socketpair");
    }
    Fd other(ends[1]);
    std::shared_ptr<CarriedConnection> made(
        new CarriedConnection(poller, std::move(agent), std::move(until_over), Fd(ends[0])));
    made->poll_id_ = poller.add(made->socket_.get(), made);
    return {std::move(made), std::move(other)};
}

CarriedConnection::CarriedConnection(Poller& poller, std::shared_ptr<AgentConnection> agent,
                                     std::shared_ptr<void> until_over, Fd socket)
    : poller_(poller),
      agent_(std::move(agent)),
      until_over_(std::move(until_over)),
      socket_(std::move(socket)) {}

CarriedConnection::~CarriedConnection() {
    if (poll_id_ != 0) poller_.remove(poll_id_, socket_.get());
}

void CarriedConnection::start(std::int64_t number, AgentConnection::Deadline deadline) {
    stream_ = agent_->open(shared_from_this(), dumpJson({{"op", "carry"}, {"connection", number}}),
                           deadline);
    agent_->wantTick(Steady::now());  // the Poller makes the first move
}

bool CarriedConnection::frame(AgentConnection&, const FrameHeader& header,
                              std::string_view payload) {
    stream_ = header.stream;  // start() may not have returned yet
    switch (header.type) {
        case FrameType::Data:
            if (payload.size() > window_ || tenant_ended_) {
                throw ProtocolError("more bytes than the window of a carried connection");
            }
            window_ -= payload.size();
            inbound_.append(payload);
            break;
        case FrameType::End:
            tenant_ended_ = true;
            break;
        case FrameType::Credit:
            if (payload.size() != 4) throw ProtocolError("a credit of another size");
            credit_ += getU32(reinterpret_cast<const unsigned char*>(payload.data()));
            if (credit_ > kInitialCredit) throw ProtocolError("credit for bytes that nobody sent");
            break;
        case FrameType::Error:
            lost();
            return true;
        default:
            throw ProtocolError("a frame that no carried connection has");
    }
    move();
    return false;
}

void CarriedConnection::lost() {
    lost_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
}

void CarriedConnection::tick(AgentConnection&, std::uint32_t stream) {
    stream_ = stream;  // a tick for another stream may come before start() sets it
    const bool wanted = !begun_ || !outbound_.empty() || cut_at_;
    if (!wanted) return;  // another stream of this connection asked for it
    begun_ = true;
    move();
}

void CarriedConnection::ready() {
    pollfd state{socket_.get(), 0, 0};
    if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0) closed_ = true;
    move();
}

void CarriedConnection::move() {
    if (lost_ || stream_ == 0) return;
    deliver();
    collect();
    endIfClosed();
    watch();
}

/// Moves the tenant's bytes to the pair.
void CarriedConnection::deliver() {
    std::size_t sent = 0;
    while (sent < inbound_.size() && !closed_) {
        const ssize_t n = ::send(socket_.get(), inbound_.data() + sent, inbound_.size() - sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && later()) break;
        if (n < 0) {
            closed_ = true;
        } else {
            sent += static_cast<std::size_t>(n);
        }
    }
    if (closed_) {  // nobody is left to read them, and no more are asked for
        inbound_.clear();
        return;
    }
    inbound_.erase(0, sent);
    owed_ += sent;
    if (owed_ >= kGrantFrom) {
        window_ += owed_;
        agent_->postCredit(stream_, std::exchange(owed_, 0));
    }
    if (tenant_ended_ && inbound_.empty() && !std::exchange(tenant_end_told_, true)) {
        ::shutdown(socket_.get(), SHUT_WR);
    }
}

/// Moves the pair's bytes to the agent, as far as the agent has granted.
void CarriedConnection::collect() {
    std::array<char, kPiece> piece;
    for (int i = 0; i < kPiecesInARow && !end_sent_; ++i) {
        if (outbound_.empty() && !ended_ && credit_ > 0) {
            const ssize_t n =
                ::recv(socket_.get(), piece.data(), std::min(credit_, piece.size()), MSG_DONTWAIT);
            if (n < 0 && later()) return;
            if (n <= 0) {
                ended_ = true;
            } else {
                outbound_.assign(piece.data(), static_cast<std::size_t>(n));
                credit_ -= outbound_.size();
            }
        }
        if (!outbound_.empty()) {
            if (!agent_->offer(FrameType::Data, stream_, outbound_)) {
                const auto now = Steady::now();
                if (!stuck_since_) stuck_since_ = now;
                const bool long_stuck = now - *stuck_since_ > kStuck;
                return agent_->wantTick(now + (long_stuck ? kTryLater : kTryAgain));
            }
            stuck_since_.reset();
            outbound_.clear();
            continue;
        }
        if (!ended_ || reset_) return;
        agent_->post(FrameType::End, stream_, {});
        end_sent_ = true;
    }
}

/// A Cancel lets the agent drop what it has, so it goes after the tenant has taken everything.
void CarriedConnection::endIfClosed() {
    if (!closed_ || cancelled_) return;
    const auto now = Steady::now();
    if (!cut_at_) {
        cut_at_ = now + kLastBytes;
        agent_->wantTick(*cut_at_);
    }
    const bool through = reset_ || (end_sent_ && credit_ == kInitialCredit);
    if (!through && now < *cut_at_) return;
    cancelled_ = true;
    agent_->post(FrameType::Cancel, stream_, {});
}

void CarriedConnection::watch() {
    if (closed_ && ended_) return;  // its hang-up would be reported again and again
    std::uint32_t events = 0;
    if (!inbound_.empty()) events |= EPOLLOUT;
    if (!ended_ && outbound_.empty() && credit_ > 0) events |= EPOLLIN;
    if (closed_ && events == 0) return;  // the agent's next frame moves it on
    poller_.arm(poll_id_, socket_.get(), events);
}

}  // namespace hearth::agent
