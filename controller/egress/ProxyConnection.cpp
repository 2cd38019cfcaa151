#include "controller/egress/ProxyConnection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/http/Url.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/egress/transport/ClientHello.h"
#include "controller/egress/transport/ForwardedFields.h"

namespace hearth::egress {
namespace {

constexpr std::chrono::milliseconds kIdle = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kHeadWithin = std::chrono::seconds(15);
constexpr std::chrono::milliseconds kPause = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kHelloWithin = std::chrono::seconds(10);
constexpr HeadLimits kHeadLimits{.bytes = 32U << 10U, .line = 8U << 10U, .fields = 100};
constexpr std::size_t kPiece = 64U << 10U;
constexpr int kBadRequest = 400;
constexpr int kMethodNotAllowed = 405;
constexpr std::size_t kMaxShown = 200;

/// Makes one line of plain characters from any text, for use as a reason phrase.
std::string oneLine(std::string_view text) {
    std::string out(text.substr(0, std::min(text.find('\n'), kMaxShown)));
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
    return out;
}

constexpr int kWhole = 200;
constexpr int kPartial = 206;
constexpr int kNotSatisfiable = 416;

/// The head of an answer with a file of `size`, or with a part of it.
std::string fileHead(const MirrorAnswer& reply, int status, std::optional<std::uint64_t> size,
                     const ByteRange& part, bool more) {
    std::string head = status == kPartial          ? "HTTP/1.1 206 Partial Content\r\n"
                       : status == kNotSatisfiable ? "HTTP/1.1 416 Range Not Satisfiable\r\n"
                                                   : "HTTP/1.1 200 OK\r\n";
    head += "Content-Type: " + reply.content_type + "\r\nETag: " + reply.etag + "\r\n";
    if (size) {
        head += "Accept-Ranges: bytes\r\nContent-Length: " + std::to_string(part.length) + "\r\n";
    }
    if (status != kWhole) {
        head += "Content-Range: bytes ";
        head += status == kPartial ? std::to_string(part.offset) + "-" +
                                         std::to_string(part.offset + part.length - 1)
                                   : "*";
        head += "/" + std::to_string(size.value()) + "\r\n";
    }
    if (!more) head += "Connection: close\r\n";
    return head + "\r\n";
}

Destination destinationOf(const std::string& authority, std::uint16_t otherwise) {
    std::optional<Destination> out = Destination::parse(authority, otherwise);
    if (!out || out->port == 0) {
        throw Refused(kForbidden, "bad_destination",
                      "\"" + authority + "\" is not a host and port in the usual spelling");
    }
    return *out;
}

}  // namespace

ProxyConnection::ProxyConnection(int fd, const ProxyFacts& facts, std::function<void()> reset)
    : fd_(fd), facts_(facts), reset_(std::move(reset)), socket_(fd) {}

void ProxyConnection::run() {
    try {
        while (readHead() && serve()) {
        }
        if (tls_ && !broken_) tls_->end(kPause);
    } catch (const StreamBroken&) {  // the client has gone
        return;
    }
    if (broken_) reset_();
}

std::chrono::milliseconds ProxyConnection::patience(TimePoint until) const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - facts_.clock.now());
    if (left.count() <= 0) throw StreamBroken("it took too long");
    return left;
}

bool ProxyConnection::readHead() {
    HeadScanner scanner;
    TimePoint until = facts_.clock.now() + kIdle;
    std::array<char, 8'192> piece;
    while (true) {
        const HeadScanner::Result result = scanner.scan(buffer_, kHeadLimits);
        if (result == HeadScanner::Result::Complete) break;
        const std::size_t n = result == HeadScanner::Result::Bad
                                  ? 0
                                  : stream_->read(piece.data(), piece.size(), patience(until));
        if (n == 0) {
            if (buffer_.empty()) return false;
            std::this_thread::sleep_for(kPause);
            answer(kBadRequest, "text/plain", "this is not HTTP\n", false);
            return false;
        }
        // A head must be complete within kHeadWithin of its first byte, however slowly it arrives.
        if (buffer_.empty()) until = facts_.clock.now() + kHeadWithin;
        buffer_.append(piece.data(), n);
    }
    const std::string_view bytes = std::string_view(buffer_).substr(0, scanner.end());
    const char* const wrong = head_.parse(
        bytes, kHeadLimits, tls_ ? RequestHead::Targets::Paths : RequestHead::Targets::Proxied);
    buffer_.erase(0, scanner.end());
    if (wrong == nullptr) return true;
    std::this_thread::sleep_for(kPause);
    answer(kBadRequest, "text/plain", std::string(wrong) + "\n", false);
    return false;
}

EgressKind ProxyConnection::kind() const {
    if (intercepted_) return EgressKind::Https;
    if (head_.method == "CONNECT") return EgressKind::Tunnel;
    return head_.authority.empty() ? EgressKind::Mirror : EgressKind::Http;
}

bool ProxyConnection::serve() {
    EgressEntry entry;
    entry.at = facts_.clock.wall();
    entry.decision = "allowed";
    entry.kind = kind();
    entry.destination = intercepted_              ? intercepted_->text()
                        : head_.authority.empty() ? "mirror"
                                                  : oneLine(head_.authority);
    const TimePoint begin = facts_.clock.now();
    bool more = false;
    try {
        facts_.egress.admit();
        if (intercepted_) {
            more = authorized(*intercepted_, true, entry);
        } else if (entry.kind == EgressKind::Mirror) {
            more = serveMirror(entry);
        } else {
            more = entry.kind == EgressKind::Tunnel ? tunnel(entry) : forward(entry);
        }
    } catch (const Refused& e) {
        entry.decision = e.reason();
        entry.status = e.status();
        entry.duration_ms = toMillis(facts_.clock.now() - begin);
        facts_.egress.record(entry);
        // A client that exceeds its rate is answered late; else it would only ask more often.
        if (e.status() == kTooMany) std::this_thread::sleep_for(kPause);
        answer(e.status(), "text/plain; charset=utf-8", std::string(e.what()) + "\n", false,
               e.what());
        return false;
    } catch (const StreamBroken&) {  // the bytes before the break still count
        broken_ = true;
        more = false;
    }
    entry.duration_ms = toMillis(facts_.clock.now() - begin);
    facts_.egress.record(std::move(entry));
    return more;
}

bool ProxyConnection::serveMirror(EgressEntry& entry) {
    if (facts_.mirror == nullptr) {
        throw Refused(kNotFound, "no_mirror", "this server mirrors no package index");
    }
    if (head_.content_length > 0 || head_.chunked) {
        throw Refused(kBadRequest, "read_only", "the mirror takes no bodies");
    }
    MirrorAnswer reply = facts_.mirror->answer({head_, facts_.egress.facts().tenant});
    entry.status = reply.status;
    if (!reply.what.empty()) entry.destination = oneLine(reply.what);
    if (!reply.result.empty()) entry.decision = reply.result;
    if (!reply.etag.empty()) return sendFile(reply, entry);
    if (reply.result == "error") {
        entry.decision = reply.status == kNotFound           ? "not_found"
                         : reply.status == kMethodNotAllowed ? "read_only"
                                                             : "index_failed";
    }
    entry.received = reply.text->size();
    facts_.egress.book(0, entry.received);
    // Most package managers show only the reason phrase of an answer that is no success.
    answer(reply.status, reply.content_type, *reply.text, head_.keep_alive,
           reply.result == "error" ? *reply.text : "");
    return head_.keep_alive;
}

bool ProxyConnection::wantsPart(const std::string& etag) const {
    const RequestHead::Field* const condition = head_.find("If-Range");
    return head_.method == "GET" && head_.find("Range") != nullptr &&
           (condition == nullptr || condition->value == etag);
}

bool ProxyConnection::sendFile(const MirrorAnswer& reply, EgressEntry& entry) {
    std::optional<std::uint64_t> size = reply.file ? reply.file->size() : reply.size;
    ByteRange part{ByteRange::Kind::Whole, 0, size.value_or(UINT64_MAX)};
    if (wantsPart(reply.etag)) {
        if (!size) size = reply.file->whole();
        part = parseRange(head_.find("Range")->value, *size);
    }
    entry.status = part.kind == ByteRange::Kind::Whole  ? kWhole
                   : part.kind == ByteRange::Kind::Part ? kPartial
                                                        : kNotSatisfiable;
    // Without a length, the end of the file is the end of the connection.
    const bool more = head_.keep_alive && (size || !reply.file);
    stream_->write(fileHead(reply, entry.status, size, part, more), kTakeWithin);
    if (reply.file) sendPart(*reply.file, part, entry);
    return more;
}

void ProxyConnection::sendPart(CachedFile& file, const ByteRange& part, EgressEntry& entry) {
    const std::uint64_t end = part.offset + part.length;
    std::string piece(kPiece, '\0');
    std::uint64_t offset = part.offset;
    try {
        while (offset < end) {
            const std::uint64_t room = std::min<std::uint64_t>(piece.size(), end - offset);
            const std::size_t n = file.read(offset, piece.data(), room);
            if (n == 0) break;
            // The client may take its part for a whole one at its end: all is verified before.
            if (offset + n == end) file.whole();
            stream_->write({piece.data(), n}, kTakeWithin);
            offset += n;
            entry.received = offset - part.offset;
            if (!facts_.egress.book(0, n)) throw StreamBroken("no more may be carried");
        }
    } catch (const Refused& e) {  // the answer has begun: only a broken connection can report it
        entry.decision = e.reason();
        throw StreamBroken(e.what());
    }
}

bool ProxyConnection::forward(EgressEntry& entry) {
    if (head_.chunked) {
        throw Refused(411, "chunked", "say how long the body is (Content-Length)");
    }
    const Destination destination = destinationOf(head_.authority, kHttpPort);
    entry.destination = destination.text();
    if (facts_.keyring != nullptr && facts_.keyring->covers(destination, false)) {
        return authorized(destination, false, entry);
    }
    const Fd outside = facts_.dialer.dial(facts_.egress.policy(), destination);
    const std::string head = forwardedHead(head_);
    SocketStream out(outside.get());
    try {
        out.write(head, kTakeWithin);
    } catch (const StreamBroken&) {
        throw Refused(502, "unreachable", destination.text() + " does not listen");
    }
    entry.sent = head.size();
    // The bytes after this request's body are not for this destination.
    const std::size_t ahead =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), head_.content_length));
    carry(outside, std::string_view(buffer_).substr(0, ahead), head_.content_length, entry);
    return false;
}

bool ProxyConnection::tunnel(EgressEntry& entry) {
    const Destination destination = destinationOf(head_.authority, 0);
    entry.destination = destination.text();
    const bool ours = facts_.keyring != nullptr && facts_.keyring->authority() != nullptr &&
                      facts_.keyring->covers(destination, true);
    Fd outside;
    if (ours) {
        facts_.dialer.permitted(facts_.egress.policy(), destination);
    } else {
        outside = facts_.dialer.dial(facts_.egress.policy(), destination);
    }
    stream_->write("HTTP/1.1 200 Connection established\r\n\r\n", kTakeWithin);
    if (!readHello(destination, entry)) return false;
    if (ours) {
        intercept(destination);
        return true;
    }
    carry(outside, buffer_, UINT64_MAX, entry);
    return false;
}

bool ProxyConnection::readHello(const Destination& destination, EgressEntry& entry) {
    std::array<char, 8'192> piece;
    ClientHello hello = parseClientHello(buffer_);
    const TimePoint until = facts_.clock.now() + kHelloWithin;
    while (hello.state == ClientHello::State::Incomplete) {
        const std::size_t n = stream_->read(piece.data(), piece.size(), patience(until));
        if (n == 0) {
            entry.decision = "no_hello";
            return false;
        }
        buffer_.append(piece.data(), n);
        hello = parseClientHello(buffer_);
    }
    // The answer has begun, so a refusal can only break the connection.
    if (hello.state == ClientHello::State::NotTls) {
        entry.decision = "not_tls";
        return false;
    }
    std::string name = hello.server_name;
    if (name.ends_with('.')) name.pop_back();
    if (destination.literal ? !name.empty() : name != destination.host) {
        entry.decision = "server_name";
        return false;
    }
    return true;
}

void ProxyConnection::intercept(const Destination& destination) {
    const std::shared_ptr<SSL_CTX> server =
        facts_.keyring->authority()->serverFor(destination.host);
    tls_.emplace(*server, socket_, buffer_, kHelloWithin);
    buffer_.clear();
    stream_ = &*tls_;
    intercepted_ = destination;
}

bool ProxyConnection::authorized(const Destination& destination, bool tls, EgressEntry& entry) {
    if (head_.chunked) {
        throw Refused(411, "chunked", "say how long the body is (Content-Length)");
    }
    const RequestHead::Field* const host = head_.find("Host");
    if (tls &&
        (host == nullptr || Destination::parse(host->value, destination.port) != destination)) {
        throw Refused(421, "other_host", "this connection is to " + destination.text());
    }
    if (head_.method == "HEAD" && head_.content_length > 0) {
        throw Refused(kBadRequest, "body", "a HEAD has no body");
    }
    if (head_.method == "TRACE" || head_.method == "CONNECT") {
        throw Refused(kForbidden, "method", head_.method + " is not allowed with credentials");
    }
    const CredentialGrant grant = facts_.keyring->grant(destination, tls);
    if (!call_) {
        call_.emplace(facts_.dialer, facts_.egress, facts_.ca_file, [fd = fd_] {
            pollfd wait{fd, 0, 0};
            return ::poll(&wait, 1, 0) > 0;  // an error, or both directions are closed
        });
    }
    return call_->perform({head_, destination, tls, grant}, *stream_, buffer_, entry);
}

void ProxyConnection::carry(const Fd& outside, std::string_view first, std::uint64_t most_sent,
                            EgressEntry& entry) {
    SocketStream out(outside.get());
    out.write(first, kTakeWithin);
    facts_.egress.book(entry.sent + first.size(), 0);
    RelayLimits limits;
    if (most_sent != UINT64_MAX) {
        limits.sent = most_sent - first.size();
        limits.tell_end = false;
    }
    limits.booked = [this](const Carried& more) {
        return facts_.egress.book(more.sent, more.received);
    };
    Carried carried;
    const auto count = [&] {
        entry.sent += first.size() + carried.sent;
        entry.received = carried.received;
    };
    try {
        relay(fd_, outside.get(), limits, carried);
    } catch (const StreamBroken&) {
        count();
        throw;
    }
    count();
}

void ProxyConnection::answer(int status, const std::string& type, const std::string& text,
                             bool keep_alive, const std::string& note) {
    std::string head = "HTTP/1.1 " + std::to_string(status) + " " +
                       (note.empty() ? (status == 200 ? "OK" : "Refused") : oneLine(note)) +
                       "\r\nContent-Type: " + type + "\r\n";
    // For HEAD, the length is not known yet.
    if (head_.method != "HEAD") {
        head += "Content-Length: " + std::to_string(text.size()) + "\r\n";
    }
    if (status == 429) head += "Retry-After: 1\r\n";
    if (!keep_alive) head += "Connection: close\r\n";
    head += "\r\n";
    stream_->write(head, kTakeWithin);
    if (head_.method != "HEAD") stream_->write(text, kTakeWithin);
}

}  // namespace hearth::egress
