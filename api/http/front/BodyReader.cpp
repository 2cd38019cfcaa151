#include "api/http/front/BodyReader.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/Error.h"

namespace hearth::api {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMaxChunkLine = 1024;
constexpr std::size_t kMaxTrailers = 4096;
constexpr std::size_t kMaxChunkDigits = 15;
/// Reads of at least this size go straight to the caller's buffer.
constexpr std::size_t kDirect = 16U << 10U;

nanoseconds timeFor(std::uint64_t bytes, std::uint64_t rate) {
    return std::chrono::duration_cast<nanoseconds>(
        std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
}

}  // namespace

BodyReader::BodyReader(Connection& connection, const FrontOptions& options, const Clock& clock)
    : connection_(connection), options_(options), clock_(clock), allowance_(options.body_time) {
    const RequestHead& head = connection.head;
    if (head.chunked) {
        state_ = State::ChunkSize;
    } else if (head.content_length == 0) {
        state_ = State::End;
    } else {
        left_ = head.content_length;
    }
    expect_ = head.expect_continue && state_ != State::End && connection.input.empty();
}

template <typename Receive>
void BodyReader::fillBy(Receive receive) {
    goOn();
    while (true) {
        const Connection::Received got = receive();
        if (got == Connection::Received::Some) return;
        if (got == Connection::Received::End) fail("the request body was cut off");
        waitReadable();
    }
}

void BodyReader::fill() {
    fillBy([this] { return connection_.receive(); });
}

std::size_t BodyReader::read(char* out, std::size_t size) {
    if (broken_) fail("the request body is broken");
    while (state_ == State::ChunkSize || state_ == State::ChunkEnd || state_ == State::Trailers) {
        if (state_ == State::ChunkEnd) {
            if (!line(2).empty()) fail("a chunk does not end where it should");
            state_ = State::ChunkSize;
        } else if (state_ == State::ChunkSize) {
            chunkSize();
        } else {
            trailers();
        }
    }
    if (state_ == State::End || size == 0) return 0;

    auto got = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
    if (connection_.input.empty() && got >= kDirect) {
        std::size_t received = 0;
        fillBy([&] { return connection_.receive(out, got, received); });
        got = received;
    } else {
        if (connection_.input.empty()) fill();
        got = std::min(got, connection_.input.size());
        connection_.input.view().copy(out, got);
        connection_.input.take(got);
    }
    left_ -= got;
    received_ += got;
    if (left_ == 0) state_ = connection_.head.chunked ? State::ChunkEnd : State::End;
    // If the end of a chunked body has arrived, it is taken at once: the connection is then free.
    if (state_ == State::ChunkEnd && connection_.input.view().starts_with("\r\n0\r\n\r\n")) {
        connection_.input.take(7);
        state_ = State::End;
    }
    return got;
}

void BodyReader::chunkSize() {
    const std::string text = line(kMaxChunkLine);
    const std::size_t end = std::min(text.find(';'), text.size());
    std::size_t digits = end;
    if (end < text.size()) {
        while (digits > 0 && (text[digits - 1] == ' ' || text[digits - 1] == '\t')) --digits;
    }
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) {
            fail("a chunk's size holds a control character");
        }
    }
    const auto [stop, error] = std::from_chars(text.data(), text.data() + digits, left_, 16);
    if (digits == 0 || digits > kMaxChunkDigits || error != std::errc() ||
        stop != text.data() + digits) {
        fail("a chunk's size is malformed");
    }
    state_ = left_ == 0 ? State::Trailers : State::Data;
}

void BodyReader::trailers() {
    std::size_t total = 0;
    while (true) {
        const std::string text = line(kMaxTrailers);
        if (text.empty()) break;
        total += text.size();
        if (total > kMaxTrailers) fail("the trailers are too large");
        const std::size_t colon = text.find(':');
        if (colon == std::string::npos || !isToken(std::string_view(text).substr(0, colon))) {
            fail("a trailer is malformed");
        }
    }
    state_ = State::End;
}

std::string BodyReader::line(std::size_t limit) {
    while (true) {
        const std::string_view bytes = connection_.input.view();
        const std::size_t feed = bytes.find('\n');
        if (feed != std::string_view::npos) {
            if (feed == 0 || bytes[feed - 1] != '\r' || feed - 1 > limit) {
                fail("a line of the chunked coding is malformed");
            }
            std::string text(bytes.substr(0, feed - 1));
            connection_.input.take(feed + 1);
            return text;
        }
        if (bytes.size() > limit + 1) fail("a line of the chunked coding is too long");
        fill();
    }
}

void BodyReader::goOn() {
    if (!expect_) return;
    expect_ = false;
    constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    // The socket's buffer holds nothing else from this side, so it takes this whole or is broken.
    if (::send(connection_.fd.get(), kGoOn.data(), kGoOn.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(kGoOn.size())) {
        fail("the client has gone");
    }
}

void BodyReader::waitReadable() {
    if (!may_wait_) fail("the rest of the body has not arrived");
    const std::uint64_t size =
        connection_.head.chunked ? received_ : connection_.head.content_length;
    const nanoseconds left = allowance_ + timeFor(size, options_.body_rate) - waited_;
    if (left <= nanoseconds::zero()) {
        broken_ = true;
        throw Error(ErrorCode::Deadline, "the request body came too slowly");
    }
    const auto patience = std::min(std::chrono::ceil<std::chrono::milliseconds>(left),
                                   std::chrono::milliseconds(options_.body_stall));
    const TimePoint before = clock_.now();
    pollfd entry{connection_.fd.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(patience.count()));
    waited_ += clock_.now() - before;
    if (ready == 0 && patience == options_.body_stall) {
        broken_ = true;
        throw Error(ErrorCode::Deadline, "the request body has stopped coming");
    }
}

bool BodyReader::discardArrived(std::size_t limit) {
    if (broken_ || expect_) return false;
    may_wait_ = false;
    std::array<char, kDirect> scratch;
    std::size_t total = 0;
    try {
        while (!finished()) {
            const std::size_t got = read(scratch.data(), scratch.size());
            total += got;
            if (total > limit) return false;
        }
    } catch (const Error&) {
        return false;  // nobody waits for this body: only the connection is closed
    }
    return true;
}

void BodyReader::fail(const char* what) {
    broken_ = true;
    throw Error(ErrorCode::InvalidArgument, what);
}

}  // namespace hearth::api
