#include "api/http/front/Connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "api/http/front/Exchange.h"

namespace hearth::api {

Connection::Connection() = default;
Connection::~Connection() = default;

Connection::Readiness Connection::check(const FrontOptions& options, const Clock& clock) {
    if (wrong != nullptr) return Readiness::Bad;
    if (!head_done) {
        const HeadScanner::Result found = scanner.scan(input.view(), options.head);
        if (found == HeadScanner::Result::Incomplete) return Readiness::Waiting;
        if (found == HeadScanner::Result::Bad) {
            wrong = "a line does not end with CRLF, or the head is too large";
            return Readiness::Bad;
        }
        const std::size_t end = scanner.end();
        scanner.reset();
        wrong = head.parse(input.view().substr(0, end), options.head);
        if (wrong != nullptr) return Readiness::Bad;
        input.take(end);
        head_size = end;
        head_done = true;
        head_at = clock.now();
    }
    const bool eager =
        !head.chunked && !head.expect_continue && head.content_length <= options.eager_body;
    return eager && input.size() < head.content_length ? Readiness::Waiting : Readiness::Ready;
}

Connection::Received Connection::receive() {
    std::array<char, 16U << 10U> scratch;
    std::size_t got = 0;
    const Received result = receive(scratch.data(), scratch.size(), got);
    input.append({scratch.data(), got});
    return result;
}

Connection::Received Connection::receive(char* out, std::size_t size, std::size_t& received) {
    while (true) {
        const ssize_t got = ::recv(fd.get(), out, size, 0);
        if (got > 0) {
            received = static_cast<std::size_t>(got);
            return Received::Some;
        }
        if (got == 0) return Received::End;
        if (errno == EINTR) continue;
        return errno == EAGAIN ? Received::Nothing : Received::End;
    }
}

void Connection::tellAccess(AccessLog* log, bool whole) {
    const std::unique_ptr<AccessEntry> entry = std::move(access);
    if (log == nullptr || !entry) return;
    if (stream) entry->bytes_out += stream->sent();
    entry->whole = whole;
    log->record(*entry);
}

}  // namespace hearth::api
