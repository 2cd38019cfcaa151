#include "pool/runtime/docker/EngineHttp.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Error.h"

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kMaxHead = 64U << 10U;
constexpr std::size_t kPiece = 64U << 10U;

[[noreturn]] void notHttp(const char* why) {
    throw std::runtime_error(std::string("the Docker Engine's answer is not understood: ") + why);
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::optional<std::size_t> number(std::string_view text, int base) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Takes an answer apart as it comes in.
class Reader {
public:
    Reader(EngineStream& stream, std::size_t max_body, TimePoint until)
        : stream_(stream), max_body_(max_body), until_(until) {}

    EngineResponse read(bool no_body) {
        EngineResponse response;
        do {
            readHead(response);
        } while (response.status >= 100 && response.status < 200);
        if (no_body || response.status == 204 || response.status == 304) return response;
        readBody(response);
        return response;
    }

    /// To the end of the head, or of the refusal; what follows the head goes to `early`.
    EngineResponse readUpgrade(std::string& early) {
        EngineResponse response;
        readHead(response);
        if (response.status >= 400) {
            readBody(response);
        } else if (response.status == 101 || (response.status == 200 && !chunked_)) {
            early = std::exchange(buffer_, {});
        } else {
            notHttp("it hands no connection over");
        }
        return response;
    }

private:
    void readBody(EngineResponse& response) {
        if (chunked_) {
            readChunks(response.body);
        } else if (length_) {
            append(response.body, *length_);
        } else {
            do {
                response.body += std::exchange(buffer_, {});
                checkSize(response.body.size());
            } while (fill());
        }
    }

    bool fill() {
        piece_.resize(kPiece);
        const std::size_t n = stream_.read(piece_.data(), piece_.size(), until_);
        buffer_.append(piece_.data(), n);
        return n > 0;
    }

    void checkSize(std::size_t size) const {
        if (size > max_body_) notHttp("it is too long");
    }

    std::string line() {
        std::size_t end = 0;
        while ((end = buffer_.find("\r\n")) == std::string::npos) {
            if (buffer_.size() > kMaxHead) notHttp("a line is too long");
            if (!fill()) {
                throw Error(ErrorCode::Unavailable, "the Docker Engine closed the connection")
                    .hint("see what dockerd logs; it may be restarting");
            }
        }
        std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return text;
    }

    void readHead(EngineResponse& response) {
        const std::string status = line();
        if (!status.starts_with("HTTP/1.") || status.size() < 12) notHttp("no status line");
        const auto code = number(std::string_view(status).substr(9, 3), 10);
        if (!code) notHttp("no status");
        response.status = static_cast<int>(*code);
        chunked_ = false;
        length_.reset();
        std::size_t size = 0;
        for (std::string text = line(); !text.empty(); text = line()) {
            if ((size += text.size()) > kMaxHead) notHttp("its head is too long");
            const std::size_t colon = text.find(':');
            if (colon == std::string::npos) notHttp("a header without a colon");
            const std::string name = lower(std::string_view(text).substr(0, colon));
            const std::string_view value = trimmed(std::string_view(text).substr(colon + 1));
            if (name == "content-length") {
                length_ = number(value, 10);
                if (!length_) notHttp("its length is no number");
            } else if (name == "transfer-encoding") {
                chunked_ = lower(value) == "chunked";
                if (!chunked_) notHttp("its coding is unknown");
            } else if (name == "api-version") {
                response.api_version = value;
            }
        }
    }

    void append(std::string& body, std::size_t size) {
        checkSize(size);
        checkSize(body.size() + size);
        while (buffer_.size() < size) {
            if (!fill()) notHttp("it is cut short");
        }
        body.append(buffer_, 0, size);
        buffer_.erase(0, size);
    }

    void readChunks(std::string& body) {
        for (;;) {
            const std::string head = line();
            const auto size = number(std::string_view(head).substr(0, head.find(';')), 16);
            if (!size) notHttp("a chunk has no size");
            if (*size == 0) break;
            append(body, *size);
            if (!line().empty()) notHttp("a chunk does not end");
        }
        while (!line().empty()) continue;
    }

    EngineStream& stream_;
    std::size_t max_body_;
    TimePoint until_;
    std::vector<char> piece_;
    std::string buffer_;
    bool chunked_ = false;
    std::optional<std::size_t> length_;
};

std::string headOf(const EngineRequest& request, bool upgraded = false) {
    std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: docker\r\n";
    head += "User-Agent: hearth/" HEARTH_VERSION "\r\n";
    head += upgraded ? "Connection: Upgrade\r\nUpgrade: tcp\r\n" : "Connection: close\r\n";
    if (request.archive) {
        head += "Content-Type: application/x-tar\r\nTransfer-Encoding: chunked\r\n";
    } else if (!request.body.empty()) {
        head += "Content-Type: application/json\r\nContent-Length: " +
                std::to_string(request.body.size()) + "\r\n";
    } else if (request.method == "POST") {
        head += "Content-Length: 0\r\n";
    }
    return head + "\r\n";
}

void sendArchive(EngineStream& stream, const EngineSource& source, TimePoint until) {
    std::vector<char> piece(kPiece);
    while (const std::size_t n = source(piece.data(), piece.size())) {
        char size[32];
        const auto end = std::to_chars(size, size + sizeof size, n, 16).ptr;
        stream.write(std::string(size, end) + "\r\n", until);
        stream.write({piece.data(), n}, until);
        stream.write("\r\n", until);
    }
    stream.write("0\r\n\r\n", until);
}

}  // namespace

EngineResponse exchange(EngineStream& stream, const EngineRequest& request, std::size_t max_body,
                        TimePoint until) {
    if (request.stop != nullptr) stream.obey(*request.stop);
    std::optional<Error> refused;
    try {
        stream.write(headOf(request) + request.body, until);
        if (request.archive) sendArchive(stream, request.archive, until);
    } catch (const Error& e) {
        // Who refuses an archive says why before it has read it all, and closes.
        if (e.code() != ErrorCode::Unavailable) throw;
        refused = e;
    }
    try {
        return Reader(stream, max_body, until).read(request.method == "HEAD");
    } catch (const Error&) {
        if (refused) throw Error(*refused);
        throw;
    }
}

EngineResponse upgrade(EngineStream& stream, const EngineRequest& request, std::size_t max_body,
                       TimePoint until, std::string& early) {
    stream.write(headOf(request, true) + request.body, until);
    return Reader(stream, max_body, until).readUpgrade(early);
}

std::string percentEncoded(std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
            out += c;
        } else {
            out += '%';
            out += kDigits[byte >> 4U];
            out += kDigits[byte & 15U];
        }
    }
    return out;
}

}  // namespace hearth::pool::docker
