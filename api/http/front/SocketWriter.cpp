#include "api/http/front/SocketWriter.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace hearth::api {
namespace {

void skip(std::string_view& part, std::size_t& count) {
    const std::size_t step = std::min(part.size(), count);
    part.remove_prefix(step);
    count -= step;
}

}  // namespace

std::size_t SocketWriter::push(std::string_view first, std::string_view second,
                               std::string_view third) {
    std::array<iovec, 3> parts{{{const_cast<char*>(first.data()), first.size()},
                                {const_cast<char*>(second.data()), second.size()},
                                {const_cast<char*>(third.data()), third.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    while (true) {
        const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            sent_ += static_cast<std::uint64_t>(sent);
            return static_cast<std::size_t>(sent);
        }
        if (errno == EAGAIN) return 0;
        if (errno != EINTR) throw ClientGone("the client has gone");
    }
}

void SocketWriter::write(std::string_view first, std::string_view second, std::string_view third) {
    while (true) {
        std::size_t taken = push(first, second, third);
        skip(first, taken);
        skip(second, taken);
        skip(third, taken);
        if (first.empty() && second.empty() && third.empty()) return;
        waitWritable();
    }
}

std::size_t SocketWriter::tryWrite(std::string_view first, std::string_view second) {
    std::size_t total = 0;
    while (!first.empty() || !second.empty()) {
        std::size_t taken = push(first, second, {});
        if (taken == 0) break;
        total += taken;
        skip(first, taken);
        skip(second, taken);
    }
    return total;
}

void SocketWriter::waitWritable() {
    const double earned = static_cast<double>(sent_) / static_cast<double>(options_.body_rate);
    if (waited_ > options_.write_stall &&
        std::chrono::duration<double>(waited_ - options_.write_stall).count() > earned) {
        throw ClientGone("the client reads too slowly");
    }
    const TimePoint before = clock_.now();
    pollfd entry{fd_, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(options_.write_stall.count()));
    waited_ += clock_.now() - before;
    if (ready == 0) throw ClientGone("the client has stopped reading");
}

}  // namespace hearth::api
