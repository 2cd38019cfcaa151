#include "controller/egress/credentials/AuthorizedCall.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>

#include "base/http/Url.h"
#include "controller/egress/credentials/AnswerCharset.h"
#include "controller/egress/credentials/SecretMasker.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/transport/ForwardedFields.h"

namespace hearth::egress {
namespace {

/// The time limit for an answer to begin: many services with credentials think for minutes.
constexpr long kThinkSeconds = 300;
constexpr std::size_t kMostHead = 64U << 10U;
constexpr int kNoContent = 204;
constexpr int kSwitching = 101;
/// A line's end is held back no longer than this; else an event would wait for the next one.
constexpr auto kLineWaits = std::chrono::seconds(1);

/// Fields of an answer that could lead the client around the proxy, or that only the proxy writes.
constexpr std::array<std::string_view, 2> kNotAnswered{"Alt-Svc", "Content-Length"};
/// Fields of a request: an encoding, a charset or a part would carry the secret past the mask;
/// Expect is answered here.
constexpr std::array<std::string_view, 6> kNotAsked{"Accept-Encoding", "Accept-Charset", "Range",
                                                    "If-Range",        "Request-Range",  "Expect"};
constexpr std::string_view kAccept = "Accept";

/// Compares names as servers do that turn them into variables: "X_Key" equals "X-Key".
bool isSameName(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return equalsIgnoreCase({&x, 1}, {&y, 1}) ||
               ((x == '_' || x == '-') && (y == '_' || y == '-'));
    });
}

template <std::size_t N>
bool isOneOf(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view known) { return isSameName(known, name); });
}

[[noreturn]] void refuseCharset(const std::string& which) {
    throw Refused(kBadGateway, "charset",
                  "the answer's charset is " + which +
                      ", which is not allowed with credentials: the secret could be hidden in it; "
                      "ask for UTF-8");
}

/// Adds the request's header to `headers`: what may be forwarded, and the grant's own fields.
/// Returns the bytes of the client that are sent.
std::uint64_t addHeader(const AuthorizedCall::Request& request, CurlList& headers) {
    const RequestHead& head = request.head;
    const auto replaced = [&](std::string_view name) {
        return std::any_of(request.grant.headers.begin(), request.grant.headers.end(),
                           [&](const auto& ours) { return isSameName(ours.first, name); });
    };
    std::uint64_t sent = head.method.size() + head.target.size();
    bool accepts = false;
    for (const RequestHead::Field& field : head.fields) {
        if (!isForwarded(head, field.name) || replaced(field.name) ||
            isOneOf(kNotAsked, field.name)) {
            continue;
        }
        const std::string name(field.name);
        std::string value(field.value);
        if (isSameName(name, kAccept)) {
            value = withoutCharset(value);
            if (value.empty()) continue;
            accepts = accepts || equalsIgnoreCase(name, kAccept);
        }
        sent += name.size() + value.size() + 4;
        headers.add(value.empty() ? name + ";" : name + ": " + value);
    }
    for (const auto& [name, value] : request.grant.headers) headers.add(name + ": " + value);
    headers.add("Accept-Encoding: identity");
    headers.add("Expect:");                // removes libcurl's own
    if (!accepts) headers.add("Accept:");  // removes libcurl's own
    if (head.content_length == 0 && head.count("Content-Length") > 0) {
        headers.add("Content-Length: 0");
    }
    return sent;
}

}  // namespace

/// One request in progress; libcurl's callbacks run in the calling thread. Exceptions must not
/// cross C code, so they are kept until libcurl has returned.
struct AuthorizedCall::Transfer {
    AuthorizedCall& call;
    const Request& request;
    ByteStream& inside;
    std::string& ahead;
    EgressEntry& entry;
    SecretMasker mask;
    std::uint64_t left;            ///< bytes of the request's body not yet sent
    std::string status_line = {};  ///< of the answer's head
    std::string fields = {};
    std::size_t head_bytes = 0;
    std::string beginning = {};  ///< of the body, until it can be judged
    std::chrono::steady_clock::time_point quiet_since = {};  ///< when the service's silence began
    bool told = false;
    bool chunked = false;
    bool framed = true;
    std::exception_ptr thrown = nullptr;

    static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr*) {
        auto& transfer = *static_cast<Transfer*>(self);
        try {
            Fd fd = transfer.call.dialer_.dial(transfer.call.egress_.policy(),
                                               transfer.request.destination);
            return fd.release();
        } catch (...) {
            transfer.thrown = std::current_exception();
            return CURL_SOCKET_BAD;
        }
    }

    static int isConnected(void*, curl_socket_t, curlsocktype) {
        return CURL_SOCKOPT_ALREADY_CONNECTED;
    }

    /// Called by libcurl once a second, and when bytes move.
    static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        auto& transfer = *static_cast<Transfer*>(self);
        try {
            transfer.pause();
            return transfer.call.gone_() ? 1 : 0;
        } catch (...) {
            transfer.thrown = std::current_exception();
            return 1;
        }
    }

    static std::size_t read(char* into, std::size_t size, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        try {
            return transfer.give(into, size * count);
        } catch (...) {
            transfer.thrown = std::current_exception();
            return CURL_READFUNC_ABORT;
        }
    }

    static std::size_t header(char* bytes, std::size_t size, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        try {
            transfer.note(headLine(bytes, size * count));
            return size * count;
        } catch (...) {
            transfer.thrown = std::current_exception();
            return 0;
        }
    }

    static std::size_t body(char* bytes, std::size_t size, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        try {
            transfer.answer({bytes, size * count});
            return size * count;
        } catch (...) {
            transfer.thrown = std::current_exception();
            return 0;
        }
    }

    std::size_t give(char* into, std::size_t room) {
        std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(room, left));
        if (n == 0) return 0;
        if (!ahead.empty()) {
            n = ahead.copy(into, n);
            ahead.erase(0, n);
        } else {
            n = inside.read(into, n, kTakeWithin);
            waitedForClient();
            if (n == 0) throw StreamBroken("the request's body ends too early");
        }
        left -= n;
        entry.sent += n;
        if (!call.egress_.book(n, 0)) throw StreamBroken("no more may be carried");
        return n;
    }

    void note(std::string_view line) {
        if (told) return;  // a trailer
        head_bytes += line.size();
        if (head_bytes > kMostHead) {
            throw Refused(kBadGateway, "too_large", "the answer's head is larger than 64 KiB");
        }
        if (line.starts_with("HTTP/")) {  // the head of an interim answer may come first
            status_line = line.substr(std::min(line.find(' '), line.size()));
            fields.clear();
            if (trim(status_line).starts_with(std::to_string(kSwitching))) {
                throw Refused(kBadGateway, "switched",
                              "the answer is 101, a switch to another protocol that was not asked "
                              "for and cannot be searched for the secret");
            }
            return;
        }
        if (line.starts_with(' ') || line.starts_with('\t')) {
            throw Refused(kBadGateway, "folded",
                          "a field of the answer's head continues on a second line, which HTTP no "
                          "longer allows: the secret could be split there");
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return;
        const std::string_view name = trim(line.substr(0, colon));
        const std::string_view value = trim(line.substr(colon + 1));
        const bool coded =
            (equalsIgnoreCase(name, "Content-Encoding") && !equalsIgnoreCase(value, "identity")) ||
            (equalsIgnoreCase(name, "Transfer-Encoding") && !equalsIgnoreCase(value, "chunked"));
        if (coded) {
            throw Refused(kBadGateway, "encoded",
                          "the answer is encoded, which is not allowed with credentials: the "
                          "secret could be hidden in it");
        }
        if (equalsIgnoreCase(name, "Content-Type")) {
            if (const auto charset = unreadableCharset(value)) refuseCharset(*charset);
        }
        if (!isToken(name) || isHopByHop(name) || isOneOf(kNotAnswered, name)) return;
        fields.append(name).append(": ").append(value).append("\r\n");
    }

    /// Sends the head, when the body begins or at the end of an empty body.
    void tell() {
        if (told) return;
        told = true;
        long status = 0;
        curl_off_t length = -1;
        ::curl_easy_getinfo(call.curl_.get(), CURLINFO_RESPONSE_CODE, &status);
        ::curl_easy_getinfo(call.curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        const bool empty = status == kNoContent || status == kNotModified;
        std::string head = "HTTP/1.1" + status_line + "\r\n" + fields;
        if (length >= 0 && !empty) {
            head += "Content-Length: " + std::to_string(length) + "\r\n";
        } else if (!empty && request.head.method != "HEAD") {
            framed = chunked = request.head.http11;
            if (chunked) head += "Transfer-Encoding: chunked\r\n";
        }
        if (!mayFollow()) head += "Connection: close\r\n";
        // The head has its own mask, because the body's mask begins with the body.
        SecretMasker of_head = mask;
        std::string masked = of_head.pass(head);
        masked += of_head.rest();
        write(masked + "\r\n");
    }

    void answer(std::string_view bytes) {
        if (told) {
            piece(mask.pass(bytes));
        } else {
            beginning.append(bytes);
            if (beginning.size() >= kBodyMark) begin();
        }
        waitedForClient();
    }

    /// Judges the body's first bytes, while the answer can still be refused.
    void begin() {
        if (beginsUnreadable(beginning))
            refuseCharset("not a superset of ASCII, as the start of its body shows");
        tell();
        piece(mask.pass(beginning));
        beginning.clear();
    }

    /// Time spent waiting for the client is not the service's silence. Otherwise a client could
    /// stall until a secret has arrived up to a line's end, and receive that part.
    void waitedForClient() { quiet_since = std::chrono::steady_clock::now(); }
    bool hasMore() const {
        curl_socket_t fd = CURL_SOCKET_BAD;
        ::curl_easy_getinfo(call.curl_.get(), CURLINFO_ACTIVESOCKET, &fd);
        pollfd upstream{fd, POLLIN, 0};
        return fd != CURL_SOCKET_BAD && ::poll(&upstream, 1, 0) > 0;
    }

    void pause() {
        if (std::chrono::steady_clock::now() - quiet_since < kLineWaits || hasMore()) return;
        if (!told && !beginning.empty()) begin();
        if (told) piece(mask.pause());
    }

    void finish() {
        if (!told) begin();
        piece(mask.rest());
        if (chunked) write("0\r\n\r\n");
    }

    void piece(const std::string& bytes) {
        if (bytes.empty()) return;
        if (!chunked) return write(bytes);
        std::array<char, 20> size{};
        const int n = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
        write(std::string(size.data(), static_cast<std::size_t>(n)) + bytes + "\r\n");
    }

    void write(const std::string& bytes) {
        inside.write(bytes, kTakeWithin);
        entry.received += bytes.size();
        if (!call.egress_.book(0, bytes.size())) throw StreamBroken("no more may be carried");
    }

    bool mayFollow() const { return request.head.keep_alive && framed && left == 0; }
};

void AuthorizedCall::prepare(const Request& request, Transfer& transfer, CurlList& headers,
                             CurlList& names) {
    const RequestHead& head = request.head;
    const std::uint64_t sent = addHeader(request, headers);
    const bool body = head.content_length > 0;
    transfer.entry.sent += sent;
    if (!egress_.book(sent, 0)) throw StreamBroken("no more may be carried");

    const Destination& there = request.destination;
    // The address is never used: openSocket() connects to an address that was checked.
    if (!there.literal) names.add(there.text() + ":192.0.2.1");
    const std::string origin = (request.tls ? "https://" : "http://") + there.text() + "/";
    const std::string target = withQuery(head.target, request.grant.query);
    curl_.reset();
    curl_.set(CURLOPT_URL, origin.c_str());
    curl_.set(CURLOPT_REQUEST_TARGET, target.c_str());
    curl_.set(CURLOPT_CUSTOMREQUEST, head.method.c_str());
    curl_.set(CURLOPT_NOBODY, head.method == "HEAD" ? 1L : 0L);
    if (body) {
        curl_.set(CURLOPT_UPLOAD, 1L);
        curl_.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(head.content_length));
    }
    // libcurl resends a request on a stale connection, so only a repeatable one may reuse it.
    const bool repeatable = !body && (head.method == "GET" || head.method == "HEAD");
    curl_.set(CURLOPT_FRESH_CONNECT, repeatable ? 0L : 1L);
    curl_.set(CURLOPT_MAXCONNECTS, 1L);
    curl_.set(CURLOPT_PROTOCOLS_STR, "http,https");
    curl_.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_.set(CURLOPT_PROXY, "");
    curl_.set(CURLOPT_NOSIGNAL, 1L);
    curl_.set(CURLOPT_RESOLVE, names.get());
    curl_.set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_.set(CURLOPT_LOW_SPEED_TIME, kThinkSeconds);
    if (!ca_file_.empty()) curl_.set(CURLOPT_CAINFO, ca_file_.c_str());
    curl_.set(CURLOPT_HTTPHEADER, headers.get());
    curl_.set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::openSocket);
    curl_.set(CURLOPT_OPENSOCKETDATA, &transfer);
    curl_.set(CURLOPT_SOCKOPTFUNCTION, &Transfer::isConnected);
    curl_.set(CURLOPT_NOPROGRESS, 0L);
    curl_.set(CURLOPT_XFERINFOFUNCTION, &Transfer::progress);
    curl_.set(CURLOPT_XFERINFODATA, &transfer);
    curl_.set(CURLOPT_READFUNCTION, &Transfer::read);
    curl_.set(CURLOPT_READDATA, &transfer);
    curl_.set(CURLOPT_HEADERFUNCTION, &Transfer::header);
    curl_.set(CURLOPT_HEADERDATA, &transfer);
    curl_.set(CURLOPT_WRITEFUNCTION, &Transfer::body);
    curl_.set(CURLOPT_WRITEDATA, &transfer);
}

bool AuthorizedCall::perform(const Request& request, ByteStream& inside, std::string& ahead,
                             EgressEntry& entry) {
    Transfer transfer{*this,
                      request,
                      inside,
                      ahead,
                      entry,
                      SecretMasker(request.grant.hidden),
                      request.head.content_length};
    CurlList headers;
    CurlList names;
    prepare(request, transfer, headers, names);
    if (request.head.expect_continue && request.head.content_length > 0) {
        inside.write("HTTP/1.1 100 Continue\r\n\r\n", kTakeWithin);
    }
    const CURLcode result = ::curl_easy_perform(curl_.get());
    // finish() needs libcurl's data about this transfer, so curl_ is reset after it.
    const bool told = transfer.told;
    if (!transfer.thrown && result == CURLE_OK) transfer.finish();
    curl_.reset();  // it must not keep pointers to objects of this call
    if (told && (transfer.thrown || result != CURLE_OK)) {
        throw StreamBroken("the answer broke off");
    }
    if (transfer.thrown) std::rethrow_exception(transfer.thrown);
    const std::string& there = request.destination.host;
    if (result == CURLE_PEER_FAILED_VERIFICATION) {
        throw Refused(kBadGateway, "bad_certificate",
                      "the certificate of " + there + " is not trusted by the server");
    }
    if (result != CURLE_OK) {
        throw Refused(kBadGateway, "unreachable",
                      there + " gave no answer: " + ::curl_easy_strerror(result));
    }
    return transfer.mayFollow();
}

}  // namespace hearth::egress
