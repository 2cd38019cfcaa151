#include "pool/runtime/docker/remote/RelayPump.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/Error.h"

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kRoom = 256U << 10U;
constexpr std::size_t kPiece = 64U << 10U;
constexpr int kRounds = 16;  ///< of one link, before the others take their turns
constexpr std::uint64_t kWake = 0;

/// A buffer of bytes in one direction.
class Queue {
public:
    explicit Queue(std::string bytes = {}) : bytes_(std::move(bytes)) {}
    bool empty() const { return at_ == bytes_.size(); }
    bool roomy() const { return bytes_.size() - at_ < kRoom; }
    std::string_view front() const { return std::string_view(bytes_).substr(at_); }
    /// The end, to append to.
    std::string& back() {
        if (at_ > kRoom) {
            bytes_.erase(0, at_);
            at_ = 0;
        }
        return bytes_;
    }
    void pop(std::size_t n) {
        at_ += n;
        if (empty()) clear();
    }
    void clear() {
        bytes_.clear();
        at_ = 0;
    }

private:
    std::string bytes_;
    std::size_t at_ = 0;
};

/// Makes relays end if a daemon's machine vanishes silently. Not needed for a Unix socket, whose
/// other side is in the same kernel.
void noticeSilence(int fd) {
    const auto set = [fd](int level, int name, int value) {
        ::setsockopt(fd, level, name, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
    set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

/// One relay. Used only by the pump's thread.
class RelayPump::Link {
public:
    Link(http::ClientConnection stream, RawStream decoder, std::string early, Fd near)
        : stream_(std::move(stream)),
          decoder_(std::move(decoder)),
          near_(std::move(near)),
          to_server_(std::move(early)) {}

    /// Moves all bytes that can be moved without waiting. False when the link has ended.
    bool work(bool& again) {
        again = true;
        for (int round = 0; again && round < kRounds; ++round) {
            again = false;
            again |= takeFromServer();
            again |= giveToEngine();
            again |= takeFromEngine();
            again |= giveToServer();
            if (over()) return false;
        }
        return true;
    }

    int nearFd() const { return near_.get(); }
    int engineFd() const { return stream_.fd(); }
    std::uint32_t nearEvents() const {
        std::uint32_t events = 0;
        if (!server_ended_ && to_engine_.roomy()) events |= EPOLLIN;
        if (!to_server_.empty()) events |= EPOLLOUT;
        return events;
    }
    std::uint32_t engineEvents() const {
        std::uint32_t events = 0;
        if (engine_ended_) return events;
        if (reads()) events |= read_wants_write_ ? EPOLLOUT : EPOLLIN;
        if (!to_engine_.empty()) events |= write_wants_read_ ? EPOLLIN : EPOLLOUT;
        return events;
    }
    std::uint32_t near_watched = 0;
    std::uint32_t engine_watched = 0;

private:
    bool reads() const { return !engine_ended_ && !deaf_ && to_server_.roomy(); }
    bool over() const {
        if (broken_) return true;
        return engine_ended_ ? to_server_.empty() : server_ended_ && to_engine_.empty();
    }

    bool takeFromServer() {
        if (server_ended_ || !to_engine_.roomy()) return false;
        const ssize_t n = ::recv(near_.get(), piece_.data(), piece_.size(), MSG_DONTWAIT);
        if (n > 0) to_engine_.back().append(piece_.data(), static_cast<std::size_t>(n));
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) server_ended_ = deaf_ = true;
        if (deaf_) to_server_.clear();
        return n > 0;
    }
    bool giveToEngine() {
        if (engine_ended_ || to_engine_.empty()) return false;
        const http::ClientConnection::Moved moved = stream_.writeSome(to_engine_.front());
        to_engine_.pop(moved.bytes);
        write_wants_read_ = moved.wants_other;
        engine_ended_ |= moved.ended;
        return moved.bytes > 0;
    }
    bool takeFromEngine() {
        if (!reads()) return false;
        const http::ClientConnection::Moved moved = stream_.readSome(piece_.data(), piece_.size());
        read_wants_write_ = moved.wants_other;
        engine_ended_ |= moved.ended;
        broken_ |= !decoder_.feed({piece_.data(), moved.bytes}, to_server_.back());
        return moved.bytes > 0;
    }
    bool giveToServer() {
        if (to_server_.empty()) return false;
        const std::string_view bytes = to_server_.front();
        const ssize_t n =
            ::send(near_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) to_server_.pop(static_cast<std::size_t>(n));
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            deaf_ = true;  // it may have sent something before it closed
            to_server_.clear();
        }
        return n > 0;
    }

    http::ClientConnection stream_;
    RawStream decoder_;
    Fd near_;
    Queue to_server_;
    Queue to_engine_;
    bool server_ended_ = false;
    bool engine_ended_ = false;
    bool deaf_ = false;  ///< the near side is closed for reading
    bool broken_ = false;
    bool read_wants_write_ = false;
    bool write_wants_read_ = false;
    std::array<char, kPiece> piece_;
};

RelayPump::RelayPump() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    if (!epoll_ || !wake_) throwErrno("epoll_create1");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWake;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
        throwErrno("epoll_ctl");
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

RelayPump::~RelayPump() {
    thread_.request_stop();
    ::eventfd_write(wake_.get(), 1);
}

Fd RelayPump::carry(http::ClientConnection stream, RawStream decoder, std::string early) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throwErrno("socketpair");
    }
    Fd theirs(ends[0]);
    Fd ours(ends[1]);
    noticeSilence(stream.fd());
    const int near = ours.get();
    const auto link = std::make_shared<Link>(std::move(stream), std::move(decoder),
                                             std::move(early), std::move(ours));
    // Writable at once, so the first turn also handles bytes that TLS has already read.
    link->near_watched = EPOLLOUT;
    std::uint64_t id = 0;
    {
        const MutexLock lock(mutex_);
        id = next_id_++;
        links_.emplace(id, link);
    }
    epoll_event event{};
    event.events = EPOLLOUT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, near, &event) != 0) {
        const int error = errno;
        const MutexLock lock(mutex_);
        links_.erase(id);
        throwErrno(error, "epoll_ctl");
    }
    return theirs;
}

std::shared_ptr<RelayPump::Link> RelayPump::find(std::uint64_t id) {
    const MutexLock lock(mutex_);
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second;
}

bool RelayPump::serve(std::uint64_t id) {
    const std::shared_ptr<Link> link = find(id);
    if (!link) return false;  // ended by an earlier event of this batch
    bool again = false;
    const bool goes_on = link->work(again);
    // A descriptor without wanted events is not watched at all, because epoll would report a
    // hang-up repeatedly.
    const auto watch = [&](int fd, std::uint32_t& watched, std::uint32_t wanted) {
        if (watched == wanted) return;
        epoll_event event{};
        event.events = wanted;
        event.data.u64 = id;
        const int change = watched == 0  ? EPOLL_CTL_ADD
                           : wanted == 0 ? EPOLL_CTL_DEL
                                         : EPOLL_CTL_MOD;
        if (::epoll_ctl(epoll_.get(), change, fd, &event) != 0) throwErrno("epoll_ctl");
        watched = wanted;
    };
    watch(link->nearFd(), link->near_watched, goes_on ? link->nearEvents() : 0);
    watch(link->engineFd(), link->engine_watched, goes_on ? link->engineEvents() : 0);
    if (goes_on) return again;
    const MutexLock lock(mutex_);
    links_.erase(id);
    return false;
}

void RelayPump::run(const std::stop_token& stop) {
    std::array<epoll_event, 64> events;
    std::vector<std::uint64_t> again;
    while (!stop.stop_requested()) {
        const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                       again.empty() ? -1 : 0);
        if (count < 0 && errno != EINTR) throwErrno("epoll_wait");
        std::vector<std::uint64_t> due = std::exchange(again, {});
        for (int i = 0; i < count; ++i) {
            const std::uint64_t id = events.at(static_cast<std::size_t>(i)).data.u64;
            if (id != kWake) due.push_back(id);
        }
        std::ranges::sort(due);
        due.erase(std::unique(due.begin(), due.end()), due.end());
        for (const std::uint64_t id : due) {
            if (serve(id)) again.push_back(id);
        }
    }
}

}  // namespace hearth::pool::docker
