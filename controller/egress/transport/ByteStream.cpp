#include "controller/egress/transport/ByteStream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace hearth::egress {
namespace {

void waitFor(int fd, short events, std::chrono::milliseconds patience) {
    pollfd wait{fd, events, 0};
    int done = 0;
    do {
        done = ::poll(&wait, 1, static_cast<int>(patience.count()));
    } while (done < 0 && errno == EINTR);
    if (done == 0) throw StreamBroken("the other side is silent");
    if (done < 0) throw StreamBroken("the connection cannot be waited for");
}

bool again() {
    return errno == EAGAIN || errno == EINTR;
}

/// One direction of a relay, with a buffer of bytes that were read and not yet written.
class Way {
public:
    Way(int from, int to, std::uint64_t most, bool tell_end, std::uint64_t& count)
        : from_(from), to_(to), most_(most), count_(count), told_(!tell_end) {}

    bool wantsRead() const { return !ended_ && begin_ == end_; }
    bool wantsWrite() const { return begin_ < end_; }
    bool done() const { return ended_ && begin_ == end_; }

    void move(short from_events, short to_events) {
        if (wantsRead() && from_events != 0) fill();
        if (wantsWrite() && (to_events != 0 || from_events != 0)) flush();
        if (done() && !told_) {
            told_ = true;
            ::shutdown(to_, SHUT_WR);
        }
    }

private:
    void fill() {
        const std::uint64_t room = std::min<std::uint64_t>(most_ - count_, buffer_.size());
        if (room == 0) {
            ended_ = true;
            return;
        }
        const ssize_t n = ::recv(from_, buffer_.data(), room, MSG_DONTWAIT);
        if (n < 0 && again()) return;
        if (n < 0) throw StreamBroken("the connection broke");
        begin_ = 0;
        end_ = static_cast<std::size_t>(n);
        count_ += end_;
        if (n == 0 || count_ == most_) ended_ = true;
    }

    void flush() {
        const ssize_t n =
            ::send(to_, buffer_.data() + begin_, end_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && again()) return;
        if (n < 0) throw StreamBroken("the connection broke");
        begin_ += static_cast<std::size_t>(n);
    }

    const int from_;
    const int to_;
    const std::uint64_t most_;
    std::uint64_t& count_;
    std::array<char, 32U << 10U> buffer_{};
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool ended_ = false;
    bool told_;
};

}  // namespace

std::size_t SocketStream::read(char* into, std::size_t room, std::chrono::milliseconds patience) {
    while (true) {
        const ssize_t n = ::recv(fd_, into, room, MSG_DONTWAIT);
        if (n >= 0) return static_cast<std::size_t>(n);
        if (!again()) throw StreamBroken("the connection broke");
        waitFor(fd_, POLLIN, patience);
    }
}

void SocketStream::write(std::string_view bytes, std::chrono::milliseconds patience) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
        } else if (again()) {
            waitFor(fd_, POLLOUT, patience);
        } else {
            throw StreamBroken("the connection broke");
        }
    }
}

void resetAtClose(int fd) noexcept {
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void relay(int inside, int outside, const RelayLimits& limits, Carried& carried) {
    Way up(inside, outside, limits.sent, limits.tell_end, carried.sent);
    Way down(outside, inside, limits.received, true, carried.received);
    Carried told;
    while (!down.done()) {
        std::array<pollfd, 2> waits{{{inside, 0, 0}, {outside, 0, 0}}};
        if (up.wantsRead()) waits[0].events |= POLLIN;
        if (down.wantsWrite()) waits[0].events |= POLLOUT;
        if (down.wantsRead()) waits[1].events |= POLLIN;
        if (up.wantsWrite()) waits[1].events |= POLLOUT;
        // poll() would report a hang-up repeatedly on a side that is not waited for.
        if (waits[1].events == 0) waits[1].fd = -1;
        const int n = ::poll(waits.data(), waits.size(), static_cast<int>(limits.idle.count()));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw StreamBroken("nothing moved for too long");
        // Both directions of the inside are gone: nobody is left to read.
        if ((waits[0].revents & (POLLHUP | POLLERR)) != 0 && !up.wantsRead()) {
            throw StreamBroken("the tenant's side has gone");
        }
        up.move(waits[0].revents & (POLLIN | POLLHUP | POLLERR), waits[1].revents & POLLOUT);
        down.move(waits[1].revents & (POLLIN | POLLHUP | POLLERR), waits[0].revents & POLLOUT);
        const Carried more{carried.sent - told.sent, carried.received - told.received};
        told = carried;
        if (limits.booked && !limits.booked(more)) throw StreamBroken("no more may be carried");
    }
}

}  // namespace hearth::egress
