#include "controller/broker/ProxyConnection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/http/Url.h"
#include "controller/broker/ClientHello.h"

namespace hearth::broker {
namespace {

constexpr std::chrono::milliseconds kIdle = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kHeadWithin = std::chrono::seconds(15);
constexpr std::chrono::milliseconds kPause = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kHelloWithin = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kTakeWithin = std::chrono::seconds(60);
constexpr HeadLimits kHeadLimits{.bytes = 32U << 10U, .line = 8U << 10U, .fields = 100};
constexpr std::size_t kPiece = 64U << 10U;
constexpr std::uint16_t kHttp = 80;
constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr int kTooMany = 429;
constexpr std::size_t kMaxShown = 200;

/// What a proxy keeps to itself (RFC 9110 section 7.6.1), and what only we write.
constexpr std::array<std::string_view, 13> kNotForwarded{"Connection",
                                                         "Keep-Alive",
                                                         "Proxy-Authenticate",
                                                         "Proxy-Authorization",
                                                         "Proxy-Connection",
                                                         "TE",
                                                         "Trailer",
                                                         "Upgrade",
                                                         "Content-Length",
                                                         "Transfer-Encoding",
                                                         "Host",
                                                         "Forwarded",
                                                         "Via"};

bool forwarded(const RequestHead& head, std::string_view name) {
    for (const std::string_view known : kNotForwarded) {
        if (equalsIgnoreCase(known, name)) return false;
    }
    for (const RequestHead::Field& field : head.fields) {
        if (!equalsIgnoreCase(field.name, "Connection")) continue;
        std::string_view rest = field.value;
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            if (equalsIgnoreCase(trim(rest.substr(0, comma)), name)) return false;
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
    return true;
}

/// The head as the destination gets it: one request, one connection.
std::string forwardedHead(const RequestHead& head) {
    std::string out =
        head.method + " " + head.target + " HTTP/1.1\r\nHost: " + head.authority + "\r\n";
    for (const RequestHead::Field& field : head.fields) {
        if (!forwarded(head, field.name)) continue;
        out.append(field.name).append(": ").append(field.value).append("\r\n");
    }
    // The length is the one that the body is carried by, whatever Connection says of the field.
    if (head.count("Content-Length") > 0) {
        out += "Content-Length: " + std::to_string(head.content_length) + "\r\n";
    }
    return out + "Connection: close\r\n\r\n";
}

/// One line of plain characters, whatever is said: it becomes a reason phrase.
std::string oneLine(std::string_view text) {
    std::string out(text.substr(0, std::min(text.find('\n'), kMaxShown)));
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
    return out;
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

ProxyConnection::ProxyConnection(int fd, WorkspaceEgress& egress, const Dialer& dialer,
                                 Mirror* mirror, const Clock& clock)
    : fd_(fd), stream_(fd), egress_(egress), dialer_(dialer), mirror_(mirror), clock_(clock) {}

void ProxyConnection::run() {
    try {
        while (readHead() && serve()) {
        }
    } catch (const StreamBroken&) {  // nobody is left to be told
        return;
    }
}

std::chrono::milliseconds ProxyConnection::patience(TimePoint until) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock_.now());
    if (left.count() <= 0) throw StreamBroken("it took too long");
    return left;
}

bool ProxyConnection::readHead() {
    HeadScanner scanner;
    TimePoint until = clock_.now() + kIdle;
    std::array<char, 8'192> piece;
    while (true) {
        const HeadScanner::Result result = scanner.scan(buffer_, kHeadLimits);
        if (result == HeadScanner::Result::Complete) break;
        const std::size_t n = result == HeadScanner::Result::Bad
                                  ? 0
                                  : stream_.read(piece.data(), piece.size(), patience(until));
        if (n == 0) {
            if (buffer_.empty()) return false;
            std::this_thread::sleep_for(kPause);
            answer(kBadRequest, "text/plain", "this is not HTTP\n", false);
            return false;
        }
        // From its first byte on a head has so long to come, however it trickles.
        if (buffer_.empty()) until = clock_.now() + kHeadWithin;
        buffer_.append(piece.data(), n);
    }
    const std::string_view bytes = std::string_view(buffer_).substr(0, scanner.end());
    const char* const wrong = head_.parse(bytes, kHeadLimits, RequestHead::Targets::Proxied);
    buffer_.erase(0, scanner.end());
    if (wrong == nullptr) return true;
    std::this_thread::sleep_for(kPause);
    answer(kBadRequest, "text/plain", std::string(wrong) + "\n", false);
    return false;
}

bool ProxyConnection::serve() {
    EgressEntry entry;
    entry.at = clock_.wall();
    entry.decision = "allowed";
    entry.kind = head_.method == "CONNECT" ? "tunnel" : head_.authority.empty() ? "mirror" : "http";
    entry.destination = head_.authority.empty() ? "mirror" : oneLine(head_.authority);
    const TimePoint begin = clock_.now();
    bool more = false;
    try {
        egress_.admit();
        if (entry.kind == "mirror") {
            more = serveMirror(entry);
        } else if (entry.kind == "tunnel") {
            tunnel(entry);
        } else {
            forward(entry);
        }
    } catch (const Refused& e) {
        entry.decision = e.reason();
        entry.status = e.status();
        entry.duration_ms = toMillis(clock_.now() - begin);
        egress_.record(entry);
        // Who is refused for asking too often is not answered at once, or it only asks more often.
        if (e.status() == kTooMany) std::this_thread::sleep_for(kPause);
        answer(e.status(), "text/plain; charset=utf-8", std::string(e.what()) + "\n", false,
               e.what());
        return false;
    } catch (const StreamBroken&) {  // it was carried until then
        more = false;
    }
    entry.duration_ms = toMillis(clock_.now() - begin);
    egress_.record(std::move(entry));
    return more;
}

bool ProxyConnection::serveMirror(EgressEntry& entry) {
    if (mirror_ == nullptr) {
        throw Refused(404, "no_mirror", "this server mirrors no package index");
    }
    if (head_.content_length > 0 || head_.chunked) {
        throw Refused(kBadRequest, "read_only", "the mirror takes no bodies");
    }
    MirrorAnswer reply = mirror_->answer(head_);
    entry.status = reply.status;
    if (!reply.what.empty()) entry.destination = oneLine(reply.what);
    if (!reply.result.empty()) entry.decision = reply.result;
    if (reply.file) {
        sendFile(*reply.file, head_.keep_alive, entry);
        return head_.keep_alive;
    }
    if (reply.result == "error")
        entry.decision = reply.status == 404 ? "not_found" : "index_failed";
    entry.received = reply.text->size();
    egress_.book(0, entry.received);
    answer(reply.status, reply.content_type, *reply.text, head_.keep_alive);
    return head_.keep_alive;
}

void ProxyConnection::sendFile(CachedFile& file, bool keep_alive, EgressEntry& entry) {
    const std::optional<std::uint64_t> size = file.size();
    // Without a length only the end of the connection tells the end of the file.
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n";
    if (size) head += "Content-Length: " + std::to_string(*size) + "\r\n";
    if (!size || !keep_alive) head += "Connection: close\r\n";
    stream_.write(head + "\r\n", kTakeWithin);
    std::string piece(kPiece, '\0');
    std::uint64_t offset = 0;
    try {
        while (const std::size_t n = file.read(offset, piece.data(), piece.size())) {
            stream_.write({piece.data(), n}, kTakeWithin);
            offset += n;
            entry.received = offset;
            if (!egress_.book(0, n)) throw StreamBroken("no more may be carried");
        }
    } catch (const Refused& e) {  // the answer has begun: only a broken connection can tell
        entry.decision = e.reason();
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        throw StreamBroken(e.what());
    }
    if (!size) throw StreamBroken("told by its end");
}

void ProxyConnection::forward(EgressEntry& entry) {
    if (head_.chunked) {
        throw Refused(411, "chunked", "say how long the body is (Content-Length)");
    }
    const Destination destination = destinationOf(head_.authority, kHttp);
    entry.destination = destination.text();
    const Fd outside = dialer_.dial(egress_.policy(), destination);
    const std::string head = forwardedHead(head_);
    SocketStream out(outside.get());
    try {
        out.write(head, kTakeWithin);
    } catch (const StreamBroken&) {
        throw Refused(502, "unreachable", destination.text() + " does not listen");
    }
    entry.sent = head.size();
    // What follows this request's body is not for this destination.
    const std::size_t ahead =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), head_.content_length));
    carry(outside, std::string_view(buffer_).substr(0, ahead), head_.content_length, entry);
}

void ProxyConnection::tunnel(EgressEntry& entry) {
    const Destination destination = destinationOf(head_.authority, 0);
    entry.destination = destination.text();
    const Fd outside = dialer_.dial(egress_.policy(), destination);
    stream_.write("HTTP/1.1 200 Connection established\r\n\r\n", kTakeWithin);
    std::array<char, 8'192> piece;
    ClientHello hello = parseClientHello(buffer_);
    const TimePoint until = clock_.now() + kHelloWithin;
    while (hello.state == ClientHello::State::Incomplete) {
        const std::size_t n = stream_.read(piece.data(), piece.size(), patience(until));
        if (n == 0) {
            entry.decision = "no_hello";
            return;
        }
        buffer_.append(piece.data(), n);
        hello = parseClientHello(buffer_);
    }
    // The answer is given: what is refused now is cut off.
    if (hello.state == ClientHello::State::NotTls) {
        entry.decision = "not_tls";
        return;
    }
    std::string name = hello.server_name;
    if (name.ends_with('.')) name.pop_back();
    if (destination.literal ? !name.empty() : name != destination.host) {
        entry.decision = "server_name";
        return;
    }
    carry(outside, buffer_, UINT64_MAX, entry);
}

void ProxyConnection::carry(const Fd& outside, std::string_view first, std::uint64_t most_sent,
                            EgressEntry& entry) {
    SocketStream out(outside.get());
    out.write(first, kTakeWithin);
    egress_.book(entry.sent + first.size(), 0);
    RelayLimits limits;
    if (most_sent != UINT64_MAX) {
        limits.sent = most_sent - first.size();
        limits.tell_end = false;
    }
    limits.booked = [this](const Carried& more) { return egress_.book(more.sent, more.received); };
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
    // Of what is only asked about the length is not known yet.
    if (head_.method != "HEAD") {
        head += "Content-Length: " + std::to_string(text.size()) + "\r\n";
    }
    if (status == 429) head += "Retry-After: 1\r\n";
    if (!keep_alive) head += "Connection: close\r\n";
    head += "\r\n";
    stream_.write(head, kTakeWithin);
    if (head_.method != "HEAD") stream_.write(text, kTakeWithin);
}

}  // namespace hearth::broker
