#include "base/http/RequestHead.h"

#include <algorithm>
#include <charconv>

namespace hearth {
namespace {

constexpr std::size_t kMaxMethod = 24;
constexpr std::size_t kMaxLengthDigits = 18;

bool isDigits(std::string_view text) noexcept {
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
    }
    return !text.empty();
}

bool isTokenChar(char c) noexcept {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
    return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool isHostChar(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

bool isAddressChar(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '.' ||
           c == ':';
}

}  // namespace

bool isToken(std::string_view text) noexcept {
    for (const char c : text) {
        if (!isTokenChar(c)) return false;
    }
    return !text.empty();
}

std::optional<std::string> hostOf(std::string_view authority) {
    std::string_view host = authority;
    std::string_view port;
    bool has_port = false;
    if (authority.starts_with('[')) {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos || close < 3) return std::nullopt;
        host = authority.substr(0, close + 1);
        for (const char c : host.substr(1, close - 1)) {
            if (!isAddressChar(c)) return std::nullopt;
        }
        const std::string_view rest = authority.substr(close + 1);
        has_port = !rest.empty();
        if (has_port && rest.front() != ':') return std::nullopt;
        if (has_port) port = rest.substr(1);
    } else {
        const std::size_t colon = authority.find(':');
        has_port = colon != std::string_view::npos;
        host = authority.substr(0, colon);
        if (has_port) port = authority.substr(colon + 1);
        if (host.empty() || host.size() > 255) return std::nullopt;
        for (const char c : host) {
            if (!isHostChar(c)) return std::nullopt;
        }
    }
    if (has_port && (!isDigits(port) || port.size() > 5)) return std::nullopt;
    return toLower(host);
}

HeadScanner::Result HeadScanner::scan(std::string_view bytes, const HeadLimits& limits) {
    while (seen_ < bytes.size()) {
        const std::size_t feed = bytes.find('\n', seen_);
        if (feed == std::string_view::npos) {
            seen_ = bytes.size();
            break;
        }
        if (feed == line_at_ || bytes[feed - 1] != '\r') return Result::Bad;
        const std::size_t length = feed - 1 - line_at_;
        seen_ = feed + 1;
        line_at_ = seen_;
        if (first_line_ && (length == 0 || length > limits.line)) return Result::Bad;
        first_line_ = false;
        if (seen_ > limits.bytes) return Result::Bad;
        if (length == 0) return Result::Complete;
    }
    if (first_line_ && seen_ > limits.line + 2) return Result::Bad;
    return seen_ > limits.bytes ? Result::Bad : Result::Incomplete;
}

const char* RequestHead::parse(std::string_view bytes, const HeadLimits& limits, Targets targets) {
    bytes_.assign(bytes);
    authority.clear();
    target.clear();
    fields.clear();
    query.clear();
    std::string_view rest = bytes_;
    bool first = true;
    while (true) {
        const std::size_t end = rest.find("\r\n");
        if (end == std::string_view::npos) return "the head is not complete";
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end + 2);
        for (const char c : line) {
            const auto byte = static_cast<unsigned char>(c);
            if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
                return "the head holds a control character";
            }
        }
        if (first) {
            if (line.size() > limits.line) return "the request line is too long";
            if (const char* wrong = parseLine(line, targets)) return wrong;
            first = false;
            continue;
        }
        if (line.empty()) break;
        if (fields.size() == limits.fields) return "there are too many header fields";
        if (const char* wrong = parseField(line)) return wrong;
    }
    if (!rest.empty()) return "there is something after the head";
    return parseFraming();
}

const char* RequestHead::parseLine(std::string_view line, Targets targets) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return "the request line is malformed";
    const std::string_view verb = line.substr(0, first);
    const std::string_view asked = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (!isToken(verb) || verb.size() > kMaxMethod) return "the method is not valid";
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return "the HTTP version is not supported";
    http11 = version.back() == '1';
    method = verb;
    return parseTarget(asked, targets);
}

const char* RequestHead::parseTarget(std::string_view text, Targets targets) {
    constexpr std::string_view kScheme = "http://";
    if (targets == Targets::Proxied && method == "CONNECT") {
        if (!hostOf(text)) return "CONNECT needs a host and a port";
        authority = text;
        return nullptr;
    }
    if (targets == Targets::Proxied && equalsIgnoreCase(text.substr(0, kScheme.size()), kScheme)) {
        text.remove_prefix(kScheme.size());
        const std::size_t end = std::min(text.find_first_of("/?"), text.size());
        authority = text.substr(0, end);
        if (!hostOf(authority)) return "the host of the request target is malformed";
        text.remove_prefix(end);
    }
    // "http://host" and "http://host?query" mean the root.
    if (!authority.empty() && !text.starts_with('/')) target = "/";
    target += text;
    if (!target.starts_with('/')) return "the request target must be a path";
    for (const char c : target) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= 0x20 || byte >= 0x7F || c == '#') return "the request target is malformed";
    }
    const std::size_t mark = target.find('?');
    raw_path = target.substr(0, mark);
    std::optional<std::string> decoded = percentDecode(raw_path);
    if (!decoded) return "the path holds a bad escape";
    path = std::move(*decoded);
    if (mark == std::string::npos) return nullptr;
    std::optional<QueryParams> params = parseQuery(std::string_view(target).substr(mark + 1));
    if (!params) return "the query holds a bad escape";
    query = std::move(*params);
    return nullptr;
}

const char* RequestHead::parseField(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return "a header field is folded";
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return "a header field has no colon";
    const std::string_view name = line.substr(0, colon);
    if (!isToken(name)) return "a header name is malformed";
    fields.push_back({name, trim(line.substr(colon + 1))});
    return nullptr;
}

const char* RequestHead::parseFraming() {
    // Old clients leave Host out of a CONNECT, whose target has it anyway.
    const bool tunnel = method == "CONNECT" && !authority.empty() && count("Host") == 0;
    if (!tunnel && count("Host") != 1) return "there must be exactly one Host header";
    std::optional<std::string> name = tunnel ? std::string() : hostOf(find("Host")->value);
    if (!name) return "the Host header is malformed";
    host = std::move(*name);

    // Two values are refused, not guessed at: another program on the way may choose the other one.
    for (const char* single : {"Authorization", "Content-Type", "Idempotency-Key", "Origin"}) {
        if (count(single) > 1) return "a header field that may be given once is given twice";
    }
    const std::size_t codings = count("Transfer-Encoding");
    const std::size_t lengths = count("Content-Length");
    if (codings > 0 && lengths > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (codings > 1 || lengths > 1) return "the body's length is given twice";
    chunked = codings == 1;
    content_length = 0;
    if (chunked) {
        if (!http11) return "Transfer-Encoding needs HTTP/1.1";
        if (!equalsIgnoreCase(find("Transfer-Encoding")->value, "chunked")) {
            return "the transfer coding is not supported";
        }
    }
    if (lengths == 1) {
        const std::string_view text = find("Content-Length")->value;
        if (!isDigits(text) || text.size() > kMaxLengthDigits) return "Content-Length is no number";
        std::from_chars(text.data(), text.data() + text.size(), content_length);
    }
    const Field* expect = http11 ? find("Expect") : nullptr;
    expect_continue = expect != nullptr && equalsIgnoreCase(expect->value, "100-continue");
    expect_other = expect != nullptr && !expect_continue;
    parseConnection();
    return nullptr;
}

void RequestHead::parseConnection() {
    keep_alive = http11;
    for (const Field& field : fields) {
        if (!equalsIgnoreCase(field.name, "Connection")) continue;
        std::string_view rest = field.value;
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            const std::string_view option = trim(rest.substr(0, comma));
            rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
            if (equalsIgnoreCase(option, "close")) {
                keep_alive = false;
                return;
            }
            if (equalsIgnoreCase(option, "keep-alive")) keep_alive = true;
        }
    }
}

const RequestHead::Field* RequestHead::find(std::string_view name) const {
    for (const Field& field : fields) {
        if (equalsIgnoreCase(field.name, name)) return &field;
    }
    return nullptr;
}

std::size_t RequestHead::count(std::string_view name) const {
    std::size_t found = 0;
    for (const Field& field : fields) {
        if (equalsIgnoreCase(field.name, name)) ++found;
    }
    return found;
}

}  // namespace hearth
