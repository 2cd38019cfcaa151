#include "controller/egress/transport/ClientHello.h"

#include <cstdint>

#include "base/http/Url.h"

namespace hearth::egress {
namespace {

constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kHello = 1;
constexpr std::uint16_t kServerName = 0;
constexpr std::uint8_t kHostName = 0;
constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxRecord = 16U << 10U;
constexpr std::size_t kMessageHeader = 4;
constexpr std::size_t kVersionAndRandom = 34;

/// Takes big-endian numbers and counted pieces off a text; `bad` once the text was too short.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    std::size_t number(std::size_t bytes) {
        std::size_t value = 0;
        for (const char c : take(bytes)) value = value << 8U | static_cast<std::uint8_t>(c);
        return value;
    }
    std::string_view take(std::size_t size) {
        if (size > text_.size()) {
            bad = true;
            text_ = {};
            return {};
        }
        const std::string_view out = text_.substr(0, size);
        text_.remove_prefix(size);
        return out;
    }
    std::string_view counted(std::size_t bytes) { return take(number(bytes)); }
    bool empty() const { return text_.empty(); }
    bool bad = false;

private:
    std::string_view text_;
};

/// True if the message is complete by the length in its header.
bool isWhole(std::string_view message) {
    if (message.size() < kMessageHeader) return false;
    return message.size() - kMessageHeader >= Reader(message.substr(1)).number(3);
}

/// The first handshake message of the records, as far as it has arrived; nullopt if these are no
/// handshake records. Bytes after it (early data, for example) are ignored.
std::optional<std::string> handshake(std::string_view bytes) {
    std::string message;
    while (!isWhole(message) && bytes.size() >= kRecordHeader) {
        Reader record(bytes);
        const std::size_t type = record.number(1);
        const std::size_t major = record.number(1);
        record.number(1);
        const std::size_t length = record.number(2);
        if (type != kHandshake || major != 3 || length == 0 || length > kMaxRecord) {
            return std::nullopt;
        }
        const std::size_t there = std::min(length, bytes.size() - kRecordHeader);
        message.append(bytes.substr(kRecordHeader, there));
        bytes.remove_prefix(kRecordHeader + there);
    }
    const bool other = !bytes.empty() && static_cast<std::uint8_t>(bytes.front()) != kHandshake;
    if (other && !isWhole(message)) return std::nullopt;
    return message;
}

/// Reads the name from the extensions' bytes; false if malformed or named twice.
bool findServerName(std::string_view extensions, std::string& name) {
    Reader all(extensions);
    bool seen = false;
    while (!all.empty() && !all.bad) {
        const std::size_t type = all.number(2);
        const std::string_view body = all.counted(2);
        if (type != kServerName || all.bad) continue;
        if (seen) return false;
        seen = true;
        Reader outer(body);
        Reader list(outer.counted(2));
        const std::size_t kind = list.number(1);
        const std::string_view host = list.counted(2);
        if (outer.bad || list.bad || !outer.empty() || !list.empty() || kind != kHostName) {
            return false;
        }
        name = toLower(host);
    }
    return !all.bad;
}

}  // namespace

ClientHello parseClientHello(std::string_view bytes) {
    ClientHello out;
    const std::optional<std::string> message = handshake(bytes);
    if (!message) {
        out.state = ClientHello::State::NotTls;
        return out;
    }
    const bool full = bytes.size() >= kMaxClientHello;
    if (!message->empty() && static_cast<std::uint8_t>(message->front()) != kHello) {
        out.state = ClientHello::State::NotTls;
        return out;
    }
    if (message->size() < kMessageHeader) {
        if (full) out.state = ClientHello::State::NotTls;
        return out;
    }
    Reader head(*message);
    head.number(1);
    const std::size_t length = head.number(3);
    if (length > kMaxClientHello || (full && message->size() < kMessageHeader + length)) {
        out.state = ClientHello::State::NotTls;
        return out;
    }
    if (message->size() < kMessageHeader + length) return out;
    Reader hello(std::string_view(*message).substr(kMessageHeader, length));
    hello.take(kVersionAndRandom);
    hello.counted(1);  // session id
    hello.counted(2);  // cipher suites
    hello.counted(1);  // compression
    bool sound = !hello.bad;
    if (sound && !hello.empty()) {
        const std::string_view extensions = hello.counted(2);
        sound = !hello.bad && hello.empty() && findServerName(extensions, out.server_name);
    }
    out.state = sound ? ClientHello::State::Complete : ClientHello::State::NotTls;
    return out;
}

}  // namespace hearth::egress
