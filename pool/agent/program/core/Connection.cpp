#include "pool/agent/program/core/Connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

namespace {
constexpr std::size_t kKeepCapacity = 65'536;
constexpr std::size_t kSealedAtOnce = 65'536;
char receive_buffer[65'536];  // the loop's thread only
}  // namespace

Connection::Connection(EventLoop& loop, ConnectionOwner& owner, Fd socket,
                       std::unique_ptr<SecureLine> line)
    : opened_ns(nowNs()),
      loop_(loop),
      owner_(owner),
      socket_(std::move(socket)),
      line_(std::move(line)) {
    watched_ = EPOLLIN;
    if (!loop_.add(socket_.get(), watched_, *this)) socket_.reset();
}

Connection::~Connection() {
    if (socket_) loop_.remove(socket_.get());
}

bool Connection::meantFor(Kind wanted) const noexcept {
    return line_ == nullptr ||
           (line_->purpose() == secure::Purpose::Control) == (wanted == Kind::Control);
}

bool Connection::passes() const {
    if (line_ != nullptr) return false;
    ucred peer{};
    socklen_t size = sizeof(peer);
    // A client outside of this process namespace has no pid in it.
    return getpid() != 1 ||
           (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == 0);
}

void Connection::ready(std::uint32_t events) {
    if (!socket_) return;
    if ((events & EPOLLOUT) != 0) {
        flush();
        if (socket_ && !in_.empty()) {  // frames that waited while the queue was full
            parse();
            flush();
        }
    }
    if (socket_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void Connection::receive() {
    // One connection must not starve the others: a bounded number of reads in a turn.
    for (int i = 0; i < 8 && socket_ && queued() <= kMaxQueued; ++i) {
        const ssize_t n = recv(socket_.get(), receive_buffer, sizeof(receive_buffer), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return close();
        if (n < 0) break;
        if (!take({receive_buffer, static_cast<std::size_t>(n)})) return close();
        if (static_cast<std::size_t>(n) < sizeof(receive_buffer)) break;
    }
    if (socket_) flush();
}

/// Returns false if the connection must be closed.
bool Connection::take(std::string_view bytes) {
    if (line_ == nullptr) {
        in_.append(bytes);
    } else if (!line_->receive(bytes, in_)) {
        return false;
    }
    parse();
    return line_ == nullptr || !line_->ended();
}

void Connection::parse() {
    std::size_t at = 0;
    while (socket_ && !closing_ && in_.size() - at >= kHeaderSize && queued() <= kMaxQueued) {
        FrameHeader header;
        if (!decodeHeader(reinterpret_cast<const unsigned char*>(in_.data()) + at, header)) {
            return close();
        }
        if (in_.size() - at < kHeaderSize + header.length) break;
        if (!frame(header, std::string_view(in_).substr(at + kHeaderSize, header.length))) {
            return close();
        }
        at += kHeaderSize + header.length;
    }
    if (closing_) at = in_.size();
    in_.erase(0, at);
    if (in_.empty() && in_.capacity() > kKeepCapacity) std::string().swap(in_);
}

bool Connection::frame(const FrameHeader& header, std::string_view payload) {
    if (header.stream == 0) return false;  // no frame is for the connection itself
    if (header.type == FrameType::Request) {
        if (header.stream <= last_stream_) return false;
        last_stream_ = header.stream;
        JsonValue body;
        if (!JsonValue::parse(payload, body) || !body.isObject()) {
            fail(header.stream, "BAD_REQUEST", "the payload is no JSON object of this protocol");
        } else if (streams_.size() >= kMaxStreams) {
            fail(header.stream, "TOO_MANY", "too many open streams");
        } else {
            owner_.request(*this, header.stream, body);
        }
        return true;
    }
    if (header.stream > last_stream_) return false;
    const auto found = streams_.find(header.stream);
    if (found == streams_.end()) return true;  // the frame crossed the answer
    Stream& stream = *found->second;
    switch (header.type) {
        case FrameType::Data:
            stream.data(payload);
            return true;
        case FrameType::End:
            stream.end();
            return true;
        case FrameType::Credit:
            if (payload.size() != 4) return false;
            stream.credit(getU32(reinterpret_cast<const unsigned char*>(payload.data())));
            return true;
        case FrameType::Cancel:
            fail(header.stream, "CANCELLED", "cancelled by the client");
            return true;
        default:
            return false;  // only agents send these
    }
}

void Connection::send(FrameType type, std::uint32_t stream, Channel channel,
                      std::string_view payload) {
    if (!socket_) return;
    held_until_ns_ = INT64_MAX;
    FrameHeader header{static_cast<std::uint32_t>(payload.size()), stream, type, channel};
    unsigned char bytes[kHeaderSize];
    encodeHeader(header, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), kHeaderSize).append(payload);
}

void Connection::sendPassing(FrameType type, std::uint32_t stream, std::string_view payload,
                             Fd fd) {
    if (!socket_) return;
    passing_.push_back({out_.size(), std::move(fd)});
    send(type, stream, Channel::Bytes, payload);
}

/// Sends queued bytes as far as the socket takes them; a descriptor goes with the first byte of its
/// frame.
ssize_t Connection::sendSome() {
    if (line_ != nullptr) return sendSealed();
    std::size_t end = out_.size();
    const bool passes = !passing_.empty() && passing_.front().at == sent_;
    if (passes && passing_.size() > 1) end = passing_[1].at;
    if (!passes && !passing_.empty()) end = passing_.front().at;
    iovec part{out_.data() + sent_, end - sent_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (passes) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int fd = passing_.front().fd.get();
        std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0 && passes) passing_.pop_front();
    return n;
}

/// As sendSome(): returns the number of bytes whose frames were sealed. Sealed bytes that the
/// socket has not taken go first.
ssize_t Connection::sendSealed() {
    std::size_t taken = 0;
    if (line_->queued() == 0) {
        taken = std::min(unsealed(), kSealedAtOnce);
        line_->send(std::string_view(out_).substr(sent_, taken));
    }
    return line_->flush(socket_.get()) || taken > 0 ? static_cast<ssize_t>(taken) : -1;
}

void Connection::output(std::uint32_t stream, Channel channel, std::uint64_t offset,
                        std::string_view bytes) {
    if (!socket_) return;
    held_until_ns_ = INT64_MAX;
    FrameHeader header{static_cast<std::uint32_t>(bytes.size() + kOffsetSize), stream,
                       FrameType::Data, channel};
    unsigned char prefix[kHeaderSize + kOffsetSize];
    encodeHeader(header, prefix);
    putU64(prefix + kHeaderSize, offset);
    out_.append(reinterpret_cast<const char*>(prefix), sizeof(prefix)).append(bytes);
}

void Connection::grant(std::uint32_t stream, std::uint32_t bytes) {
    unsigned char payload[4];
    putU32(payload, bytes);
    send(FrameType::Credit, stream, Channel::Bytes, {reinterpret_cast<char*>(payload), 4});
}

void Connection::note(std::uint32_t stream, const JsonValue& body) {
    send(FrameType::Note, stream, Channel::Bytes, body.dump());
}

void Connection::noteSoon(std::uint32_t stream, const JsonValue& body) {
    const bool alone = queued() == 0;
    note(stream, body);
    if (socket_ && alone) held_until_ns_ = nowNs() + kHoldNs;
}

void Connection::reply(std::uint32_t stream, const JsonValue& body) {
    const std::string text = body.dump();
    if (text.size() > kMaxPayload) {
        return fail(stream, "INTERNAL", "the answer is larger than a frame");
    }
    send(FrameType::Reply, stream, Channel::Bytes, text);
    finish(stream);
}

void Connection::fail(std::uint32_t stream, std::string_view code, std::string_view message,
                      const JsonValue& details) {
    JsonValue body = JsonValue::object();
    body.set("code", code).set("message", message);
    for (std::size_t i = 0; i < details.keys().size(); ++i) {
        body.set(details.keys()[i], details.items()[i]);
    }
    send(FrameType::Error, stream, Channel::Bytes, body.dump());
    finish(stream);
}

void Connection::open(std::uint32_t id, std::unique_ptr<Stream> stream) {
    streams_[id] = std::move(stream);
}

void Connection::finish(std::uint32_t id) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    found->second->detach();
    // The stream may be the caller: it lives until the batch ends.
    struct Grave final : Source {
        explicit Grave(std::unique_ptr<Stream> s) : stream(std::move(s)) {}
        void ready(std::uint32_t) override {}
        std::unique_ptr<Stream> stream;
    };
    loop_.bury(std::make_unique<Grave>(std::move(found->second)));
    streams_.erase(found);
}

void Connection::flush() {
    if (!socket_ || flushing_) return;
    if (held_until_ns_ != INT64_MAX) {
        if (!closing_ && nowNs() < held_until_ns_) return;
        held_until_ns_ = INT64_MAX;
    }
    flushing_ = true;
    bool blocked = false;
    for (int round = 0; round < 16 && socket_ && !blocked; ++round) {
        while (queued() > 0) {
            const ssize_t n = sendSome();
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                blocked = true;
                if (errno != EAGAIN) close();
                break;
            }
            sent_ += static_cast<std::size_t>(n);
        }
        if (!socket_) break;
        if (queued() == 0) {
            if (out_.capacity() > kKeepCapacity) {
                std::string().swap(out_);
            } else {
                out_.clear();
            }
            sent_ = 0;
        } else if (sent_ > kMaxPayload) {
            out_.erase(0, sent_);
            for (Passing& passing : passing_) passing.at -= sent_;
            sent_ = 0;
        }
        if (!roomy()) break;
        std::vector<std::uint32_t> ids;
        for (const auto& [id, stream] : streams_) ids.push_back(id);
        for (const std::uint32_t id : ids) {
            if (const auto found = streams_.find(id); found != streams_.end())
                found->second->pump();
        }
        if (queued() == 0) break;
    }
    flushing_ = false;
    if (socket_ && closing_ && queued() == 0) close();
    if (socket_) watch();
}

void Connection::watch() {
    const std::uint32_t events =
        (queued() > 0 ? EPOLLOUT : 0U) | (queued() <= kMaxQueued && !closing_ ? EPOLLIN : 0U);
    if (events == watched_) return;
    watched_ = events;
    loop_.change(socket_.get(), events, *this);
}

void Connection::close() {
    if (!socket_) return;
    if (line_ != nullptr && line_->proven() && unsealed() == 0) {
        line_->finish();  // so the server knows that nobody cut it
        line_->flush(socket_.get());
    }
    loop_.remove(socket_.get());
    socket_.reset();
    std::string().swap(out_);
    passing_.clear();
    sent_ = 0;
    std::vector<std::uint32_t> ids;
    for (const auto& [id, stream] : streams_) ids.push_back(id);
    for (const std::uint32_t id : ids) finish(id);
    owner_.closed(*this);
}

}  // namespace hearth::agent
