#include "base/http/client/HttpClient.h"

#include <Poco/Buffer.h>
#include <Poco/Exception.h>
#include <Poco/MemoryStream.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/NetException.h>
#include <Poco/Net/StreamSocketImpl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <exception>
#include <istream>
#include <limits>
#include <ostream>
#include <span>

#include "base/http/Url.h"
#include "base/http/client/ServerUrl.h"

namespace hearth::http {
namespace {

using Kind = ExchangeError::Kind;
using Poco::Net::HTTPMessage;
using Poco::Net::HTTPRequest;

constexpr std::size_t kMaxHead = 64U << 10U;
constexpr int kMaxHeaders = 256;
constexpr std::size_t kPiece = 64U << 10U;
constexpr std::size_t kMaxWrite = 1U << 30U;  ///< Poco counts in int
constexpr std::size_t kMostReserved = 4U << 20U;
constexpr int kEnd = std::char_traits<char>::eof();

ExchangeError malformed(const std::string& what) {
    return {Kind::NotHttp, "the server's answer is not HTTP: " + what, what};
}

ExchangeError cutOff(const char* message) {
    return {Kind::Lost, message, "closed the connection"};
}

bool idempotent(const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
           method == "OPTIONS";
}

/// Throws if a part of the head has a character up to `last`, or a DEL.
void checkText(std::string_view text, unsigned char last, const char* message) {
    const auto bad = [last](char c) { return static_cast<unsigned char>(c) <= last || c == 0x7F; };
    if (std::ranges::any_of(text, bad)) throw Error(ErrorCode::InvalidArgument, message);
}

/// A head that Poco reads, after a check of the parts that Poco skips or does not limit.
class ResponseHead final : public Poco::Net::HTTPResponse {
public:
    ResponseHead() { setFieldLimit(kMaxHeaders); }

    void read(std::istream& in) override {
        std::streambuf& bytes = *in.rdbuf();
        std::string text;
        for (std::size_t line = 0; text.size() < kMaxHead;) {
            const int c = bytes.sbumpc();
            if (c == kEnd) break;
            text.push_back(static_cast<char>(c));
            if (c != '\n') continue;
            const std::string_view field = std::string_view(text).substr(line);
            if (field == "\r\n" || field == "\n") {
                Poco::MemoryInputStream whole(text.data(),
                                              static_cast<std::streamsize>(text.size()));
                return HTTPResponse::read(whole);
            }
            if (line == 0 ? !field.starts_with("HTTP/1.")
                          : field.find(':') == field.npos && field.front() != ' ') {
                break;
            }
            line = text.size();
        }
        throw Poco::Net::MessageException("the head");
    }
};

/// The socket that Poco uses: the client's connection, with one buffer each way.
class Transport final : public Poco::Net::StreamSocketImpl {
public:
    explicit Transport(ClientConnection connection) : connection_(std::move(connection)) {}

    using StreamSocketImpl::receiveBytes;
    using StreamSocketImpl::sendBytes;
    int sendBytes(const void* bytes, int length, int) override {
        std::string_view piece(static_cast<const char*>(bytes), static_cast<std::size_t>(length));
        if (!out_.empty() || piece.size() < kPiece) {  // sends a head and its body together
            const std::size_t room = std::min(kPiece - out_.size(), piece.size());
            out_.append(piece.substr(0, room));
            piece.remove_prefix(room);
            if (out_.size() == kPiece) flush();
        }
        put(piece);
        return length;
    }
    int receiveBytes(void* bytes, int length, int) override {
        flush();
        const auto most = static_cast<std::size_t>(length);
        auto* const out = static_cast<char*>(bytes);
        if (at_ == end_ && most >= kPiece) return static_cast<int>(take(out, most));
        if (at_ == end_) {
            at_ = end_ = 0;
            end_ = take(in_.get(), kPiece);
        }
        const std::size_t size = std::min(most, end_ - at_);
        std::copy_n(in_.get() + at_, size, out);
        at_ += size;
        return static_cast<int>(size);
    }

    void begin(const Patience& patience) {
        patience_ = patience;
        answered_ = false;
    }
    void waitAs(const Patience& patience) { patience_ = patience; }
    void flush() {
        put(out_);
        out_.clear();
    }
    /// From now on nothing is sent, above all not the end of a body that broke off.
    void mute() noexcept { whole_ = false; }
    /// Throws the exception that Poco's streams have swallowed.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

    bool whole() const noexcept { return whole_; }  ///< everything was sent
    bool answered() const noexcept { return answered_; }
    bool ended() const noexcept { return ended_; }
    std::string_view unread() const noexcept { return {in_.get() + at_, end_ - at_}; }
    /// The byte before the last `unused` ones that Poco has been given.
    char last(std::size_t unused) const { return at_ > unused ? in_[at_ - unused - 1] : '\0'; }
    ClientConnection& connection() noexcept { return connection_; }

private:
    template <typename Call>
    void guarded(Call call) {
        try {
            call();
        } catch (...) {
            failure_ = std::current_exception();
            throw;
        }
    }
    /// A server that refuses a long body closes before it has read all of it, and its answer says
    /// why: so the next read reports a connection that breaks here.
    void put(std::string_view bytes) {
        if (!whole_ || bytes.empty()) return;
        try {
            guarded([&] { connection_.write(bytes, patience_); });
        } catch (const ExchangeError& e) {
            if (e.kind() != Kind::Lost) throw;
            failure_ = nullptr;
            whole_ = false;
        }
    }
    std::size_t take(char* out, std::size_t most) {
        std::size_t size = 0;
        guarded([&] { size = connection_.read(out, most, patience_); });
        (size > 0 ? answered_ : ended_) = true;
        return size;
    }

    ClientConnection connection_;
    Patience patience_;
    std::string out_;
    std::unique_ptr<char[]> in_ = std::make_unique_for_overwrite<char[]>(kPiece);
    std::size_t at_ = 0;
    std::size_t end_ = 0;
    bool whole_ = true;
    bool answered_ = false;
    bool ended_ = false;
    std::exception_ptr failure_;
};

}  // namespace

std::optional<std::string> ClientResponse::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (equalsIgnoreCase(key, name)) return value;
    }
    return std::nullopt;
}

class HttpClient::Session final : public Poco::Net::HTTPClientSession {
public:
    explicit Session(ClientConnection connection)
        : HTTPClientSession(Poco::Net::StreamSocket(new Transport(std::move(connection)))),
          transport_(static_cast<Transport&>(*socket().impl())) {}
    ~Session() override { transport_.mute(); }

    bool stale() {
        return buffered() > 0 || !transport_.unread().empty() || !transport_.connection().quiet();
    }
    bool answered() const noexcept { return transport_.answered(); }
    void waitAs(const Patience& patience) { transport_.waitAs(patience); }
    int fd() { return transport_.connection().fd(); }

    void send(const HTTPRequest& head, const ClientRequest& request, const Patience& patience) {
        transport_.begin(patience);
        no_body_ = request.method == HTTPRequest::HTTP_HEAD;
        // Not sendRequest(), which would look up the server itself.
        std::streambuf& body = *sendRequestImpl(head).rdbuf();
        body.pubsync();
        // Poco's stream for a counted body would only copy it, 4 KiB at a time.
        const bool chunks = head.getChunkedTransferEncoding();
        const auto put = [&](const char* bytes, std::size_t size) {
            const auto length = static_cast<std::streamsize>(size);
            chunks ? body.sputn(bytes, length) : write(bytes, length);
        };
        if (request.source) {
            std::string piece(kPiece, '\0');
            std::size_t size = 0;
            while (transport_.whole() && (size = request.source(piece.data(), piece.size())) > 0) {
                put(piece.data(), size);
                body.pubsync();
                transport_.flush();
            }
        } else {
            for (std::size_t at = 0, size = 0; at < request.body.size(); at += size) {
                size = std::min(request.body.size() - at, kMaxWrite);
                put(request.body.data() + at, size);
            }
        }
        flushRequest();
        transport_.rethrow();
    }

    ClientResponse receive() {
        try {
            do {
                body_ = receiveResponse(head_).rdbuf();
            } while (head_.getStatus() < 200 && head_.getStatus() != 101);
            if (head_.hasContentLength() && head_.getContentLength64() < 0) {
                throw malformed("the content length");
            }
        } catch (const Poco::Exception& e) {
            transport_.rethrow();
            if (!transport_.ended()) throw malformed(e.displayText());
        }
        transport_.rethrow();
        if (transport_.ended()) throw cutOff("the server closed the connection");
        if (head_.has(HTTPMessage::TRANSFER_ENCODING) && !head_.getChunkedTransferEncoding()) {
            throw malformed("an unknown transfer coding");
        }
        ClientResponse response;
        response.status = head_.getStatus();
        for (const auto& [name, value] : head_) response.headers.emplace_back(name, value);
        return response;
    }

    /// False if `deliver` wants no more.
    bool readBody(const BodySink& deliver) {
        if (bodiless()) return true;
        std::array<char, kPiece> piece;
        const bool counted = !chunked() && head_.hasContentLength();
        Poco::Int64 left =
            counted ? head_.getContentLength64() : std::numeric_limits<Poco::Int64>::max();
        while (left > 0) {
            const std::size_t size = readPiece(piece, left);
            if (size == 0) break;
            if (!deliver({piece.data(), size})) return false;
            left -= static_cast<Poco::Int64>(size);
        }
        if (chunked()) {
            if (transport_.ended()) throw cutOff("the server closed the connection");
            if (transport_.last(static_cast<std::size_t>(buffered())) != '\n') {
                throw malformed("a chunk");
            }
        } else if (counted && left > 0) {
            throw cutOff("the answer was cut off");
        }
        return true;
    }
    /// Valid after a whole answer.
    bool reusable() const {
        const bool bounded = bodiless() || chunked() || head_.hasContentLength();
        return bounded && head_.getKeepAlive() && transport_.whole();
    }
    bool chunked() const { return head_.getChunkedTransferEncoding(); }
    /// The length of the body, if the head states it; else 0.
    std::size_t length() const {
        return head_.hasContentLength() ? static_cast<std::size_t>(head_.getContentLength64()) : 0;
    }

    /// Returns the connection; `early` receives the bytes of its stream that were already read.
    ClientConnection release(std::string& early) {
        Poco::Buffer<char> buffer(0);
        drainBuffer(buffer);
        early.assign(buffer.begin(), buffer.size()).append(transport_.unread());
        return std::move(transport_.connection());
    }

private:
    /// Returns 0 at the end of the body, or of the connection.
    std::size_t readPiece(std::span<char> piece, Poco::Int64 left) {
        auto most = static_cast<std::streamsize>(piece.size());
        if (!chunked()) return static_cast<std::size_t>(read(piece.data(), std::min(most, left)));
        if (body_->sgetc() == kEnd) return 0;  // waits for the first byte
        most = std::min(most, body_->in_avail());
        return static_cast<std::size_t>(body_->sgetn(piece.data(), most));
    }
    bool bodiless() const {
        return no_body_ || head_.getStatus() == 204 || head_.getStatus() == 304;
    }

    Transport& transport_;  ///< the base's socket
    ResponseHead head_;
    std::streambuf* body_ = nullptr;
    bool no_body_ = false;
};

HttpClient::HttpClient(std::string url, ClientOptions options) : options_(std::move(options)) {
    ServerUrl parts = ServerUrl::parse(url);
    endpoint_.name = std::move(url);
    endpoint_.socket = std::move(parts.socket);
    endpoint_.host = std::move(parts.host);
    endpoint_.port = parts.port;
    endpoint_.dead_peer = options_.dead_peer;
    host_header_ = std::move(parts.authority);
    base_path_ = std::move(parts.path);
    if (!endpoint_.socket.empty()) return;
    endpoint_.proxy = options_.proxies.proxyFor(parts.tls, endpoint_.host, endpoint_.port);
    if (!parts.tls) return;
    if (!options_.tls) {
        options_.tls =
            std::make_shared<const TlsContext>(TlsContext::Files{.machine_authorities = true});
    }
    endpoint_.tls = options_.tls.get();
}

HttpClient::HttpClient(Endpoint endpoint, ClientOptions options)
    : endpoint_(std::move(endpoint)), options_(std::move(options)) {
    const bool six = endpoint_.host.find(':') != std::string::npos;
    host_header_ = endpoint_.socket.empty() ? (six ? "[" + endpoint_.host + "]" : endpoint_.host) +
                                                  ":" + std::to_string(endpoint_.port)
                                            : "localhost";
}

HttpClient::HttpClient(HttpClient&& other) noexcept = default;
HttpClient::~HttpClient() = default;

ClientResponse HttpClient::request(const ClientRequest& request) {
    return exchange(request, nullptr, {});
}

ClientResponse HttpClient::get(const std::string& target, ClientHeaders headers) {
    ClientRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return exchange(request, nullptr, {});
}

ClientResponse HttpClient::post(const std::string& target, std::string body,
                                const std::string& content_type, ClientHeaders headers) {
    ClientRequest request;
    request.method = "POST";
    request.target = target;
    request.headers = std::move(headers);
    request.headers.emplace_back("Content-Type", content_type);
    request.body = std::move(body);
    return exchange(request, nullptr, {});
}

ClientResponse HttpClient::stream(const ClientRequest& request, const BodySink& sink,
                                  const std::function<bool(const ClientResponse&)>& head) {
    return exchange(request, &sink, head);
}

HttpClient::Upgraded HttpClient::upgrade(const ClientRequest& request) {
    connect(request);
    Upgraded upgraded;
    upgraded.response = send(request);
    const int status = upgraded.response.status;
    if (status >= 400) {
        readBody(upgraded.response, nullptr);
    } else if (status == 101 || (status == 200 && !session_->chunked())) {
        upgraded.connection = session_->release(upgraded.early);
    } else {
        throw malformed("it hands no connection over");
    }
    close();
    return upgraded;
}

void HttpClient::close() noexcept {
    {
        const MutexLock lock(open_->mutex);
        open_->fd = -1;
    }
    session_.reset();
}

void HttpClient::interrupt() noexcept {
    const MutexLock lock(open_->mutex);
    if (open_->fd >= 0) ::shutdown(open_->fd, SHUT_RDWR);
}

void HttpClient::connect(const ClientRequest& request) {
    close();
    session_ = std::make_unique<Session>(
        ClientConnection(endpoint_, {options_.connect_timeout, request.until, request.stop}));
    const MutexLock lock(open_->mutex);
    open_->fd = session_->fd();
}

ClientResponse HttpClient::send(const ClientRequest& request) {
    checkText(request.method + base_path_ + request.target, 0x20,
              "the method or target holds a blank");
    const bool by_proxy = endpoint_.proxy && endpoint_.tls == nullptr;  // else by tunnel
    const std::string target = base_path_ + request.target;
    HTTPRequest head(request.method, by_proxy ? "http://" + host_header_ + target : target,
                     HTTPMessage::HTTP_1_1);
    head.add(HTTPRequest::HOST, host_header_);
    if (by_proxy && !endpoint_.proxy->authorization.empty()) {
        head.add("Proxy-Authorization", endpoint_.proxy->authorization);
    }
    for (const ClientHeaders* headers : {&std::as_const(options_.headers), &request.headers}) {
        for (const auto& [name, value] : *headers) {
            checkText(name + value, 0x1F, "a request header holds a control character");
            head.add(name, value);
        }
    }
    if (request.source && !request.source_length) {
        head.setChunkedTransferEncoding(true);
    } else if (request.source || !request.body.empty() ||
               (request.method != "GET" && request.method != "HEAD")) {
        head.setContentLength64(static_cast<Poco::Int64>(request.source ? *request.source_length
                                                                        : request.body.size()));
    }
    Patience patience{request.timeout.value_or(options_.timeout), request.until, request.stop};
    const std::chrono::milliseconds later = patience.silence;
    patience.silence = request.answer_timeout.value_or(later);
    session_->send(head, request, patience);
    ClientResponse response = session_->receive();
    patience.silence = later;
    session_->waitAs(patience);
    return response;
}

bool HttpClient::readBody(ClientResponse& response, const BodySink* sink) {
    if (sink != nullptr) return session_->readBody(*sink);
    response.body.reserve(std::min(session_->length(), kMostReserved));
    return session_->readBody([&](std::string_view piece) {
        if (response.body.size() + piece.size() > options_.max_body) {
            throw ExchangeError(Kind::TooLong, "the server's answer is too large", "too long");
        }
        response.body.append(piece);
        return true;
    });
}

ClientResponse HttpClient::exchange(const ClientRequest& request, const BodySink* sink,
                                    const std::function<bool(const ClientResponse&)>& head) {
    if (session_ && session_->stale()) close();
    bool kept = session_ != nullptr;
    while (true) {
        if (!session_) connect(request);
        try {
            ClientResponse response = send(request);
            const bool wanted = !head || head(response);
            if (!wanted || !readBody(response, sink) || !session_->reusable()) close();
            return response;
        } catch (const ExchangeError& e) {
            // A server may close a kept connection at the very moment it is used again.
            const bool again = e.kind() == Kind::Lost && kept && !session_->answered() &&
                               !request.source && idempotent(request.method);
            close();
            if (!again) throw;
            kept = false;
        } catch (...) {
            close();
            throw;
        }
    }
}

}  // namespace hearth::http
