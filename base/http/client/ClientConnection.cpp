#include "base/http/client/ClientConnection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hearth::http {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxPiece = 1 << 20;

ErrorCode codeOf(ExchangeError::Kind kind) {
    switch (kind) {
        case ExchangeError::Kind::Late:
            return ErrorCode::Deadline;
        case ExchangeError::Kind::NotHttp:
            return ErrorCode::Internal;
        case ExchangeError::Kind::TooLong:
            return ErrorCode::PayloadTooLarge;
        default:
            return ErrorCode::Unavailable;
    }
}

ExchangeError late() {
    return {ExchangeError::Kind::Late, "the server did not answer in time"};
}

std::string tlsReason() {
    char text[256] = "unknown";
    ::ERR_error_string_n(::ERR_peek_last_error(), text, sizeof text);
    ::ERR_clear_error();
    return std::string("refuses TLS: ") + text;
}

std::string broke(int error) {
    return std::string("broke the connection: ") + std::strerror(error);
}

[[noreturn]] void badFile(const std::string& path) {
    throw Error(ErrorCode::InvalidArgument, path + " cannot be used");
}

[[noreturn]] void badText(const char* what) {
    ::ERR_clear_error();
    throw Error(ErrorCode::InvalidArgument, std::string(what) + " cannot be used");
}

using Bio = std::unique_ptr<BIO, decltype(&::BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&::X509_free)>;

Bio bioOf(const std::string& text) {
    Bio bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &::BIO_free);
    if (!bio) throw std::bad_alloc();
    return bio;
}

/// The next certificate of a PEM text; null at its end.
Certificate nextCertificate(BIO* text) {
    return {::PEM_read_bio_X509(text, nullptr, nullptr, nullptr), &::X509_free};
}

void useAuthority(SSL_CTX* context, const std::string& text) {
    const char* const name = "the certificate of the authority";
    const Bio bio = bioOf(text);
    X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
    int found = 0;
    for (Certificate one = nextCertificate(bio.get()); one; one = nextCertificate(bio.get())) {
        if (::X509_STORE_add_cert(store, one.get()) != 1) badText(name);
        ++found;
    }
    // PEM reports the end of the text as an error, too: "no start line".
    if (found == 0 || ERR_GET_REASON(::ERR_peek_last_error()) != PEM_R_NO_START_LINE) badText(name);
    ::ERR_clear_error();
}

void useCertificate(SSL_CTX* context, const std::string& text, const std::string& key) {
    const char* const name = "the client certificate";
    const Bio bio = bioOf(text);
    const Certificate own = nextCertificate(bio.get());
    if (!own || ::SSL_CTX_use_certificate(context, own.get()) != 1) badText(name);
    for (Certificate one = nextCertificate(bio.get()); one; one = nextCertificate(bio.get())) {
        if (::SSL_CTX_add1_chain_cert(context, one.get()) != 1) badText(name);
    }
    ::ERR_clear_error();
    const Bio key_bio = bioOf(key);
    // There is no terminal to ask on: a key with a passphrase cannot be used.
    const auto no_phrase = [](char*, int, int, void*) { return 0; };
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> secret(
        ::PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_phrase, nullptr), &::EVP_PKEY_free);
    if (!secret || ::SSL_CTX_use_PrivateKey(context, secret.get()) != 1) {
        badText("the client key");
    }
}

}  // namespace

ExchangeError::ExchangeError(Kind kind, const std::string& message, std::string reason, int error)
    : Error(codeOf(kind), message), kind_(kind), reason_(std::move(reason)), error_(error) {}

TlsContext::TlsContext() : context_(::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free) {
    if (!context_) throw std::bad_alloc();
    ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_mode(context_.get(),
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

void TlsContext::trustMachine() {
    // SSL_CERT_FILE and SSL_CERT_DIR replace the system's files.
    if (::SSL_CTX_set_default_verify_paths(context_.get()) != 1) throw std::bad_alloc();
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
}

TlsContext::TlsContext(const Files& files) : TlsContext() {
    if (!files.certificate.empty()) {
        if (::SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str()) != 1) {
            badFile(files.certificate);
        }
        if (::SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM) !=
            1) {
            badFile(files.key);
        }
    }
    if (files.authority.empty()) {
        if (files.machine_authorities) trustMachine();
        return;
    }
    if (::SSL_CTX_load_verify_locations(context_.get(), files.authority.c_str(), nullptr) != 1) {
        badFile(files.authority);
    }
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
}

TlsContext::TlsContext(const Pem& texts) : TlsContext() {
    ::ERR_clear_error();
    if (!texts.certificate.empty()) useCertificate(context_.get(), texts.certificate, texts.key);
    if (texts.authority.empty()) {
        trustMachine();
        return;
    }
    useAuthority(context_.get(), texts.authority);
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
}

ClientConnection::ClientConnection(const Endpoint& endpoint, const Patience& patience)
    : name_(endpoint.name), ssl_(nullptr, &::SSL_free) {
    if (!endpoint.socket.empty()) {
        connectUnix(endpoint);
        return;
    }
    connectTcp(endpoint, patience);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (endpoint.dead_peer.count() > 0) watchPeer(endpoint.dead_peer);
    if (endpoint.tls == nullptr) return;
    if (endpoint.proxy) tunnel(endpoint, patience);
    handshake(endpoint, patience);
}

void ClientConnection::cannotConnect(int error) const {
    const std::string reason = std::strerror(error);
    throw ExchangeError(ExchangeError::Kind::Connect, "cannot connect to " + name_ + ": " + reason,
                        "cannot be reached: " + reason, error);
}

ExchangeError ClientConnection::lost(const std::string& reason) const {
    return {ExchangeError::Kind::Lost, "the connection to " + name_ + " was lost", reason};
}

void ClientConnection::connectUnix(const Endpoint& endpoint) {
    fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_) throwErrno("socket");
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (endpoint.socket.size() >= sizeof where.sun_path) cannotConnect(ENAMETOOLONG);
    std::copy(endpoint.socket.begin(), endpoint.socket.end(), where.sun_path);
    // Never in progress: the other side's queue takes the connection, or is full.
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
        cannotConnect(errno);
    }
}

void ClientConnection::connectTcp(const Endpoint& endpoint, const Patience& patience) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* raw = nullptr;
    const std::string& host = endpoint.proxy ? endpoint.proxy->host : endpoint.host;
    const std::string port = std::to_string(endpoint.proxy ? endpoint.proxy->port : endpoint.port);
    if (endpoint.proxy) name_ += " (by the proxy " + host + ":" + port + ")";
    if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &raw)) {
        const std::string reason = ::gai_strerror(error);
        throw ExchangeError(ExchangeError::Kind::Connect, "cannot resolve " + host + ": " + reason,
                            "is not found: " + reason);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
    int failure = ECONNREFUSED;
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
        fd_ = Fd(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!fd_) throwErrno("socket");
        if (::connect(fd_.get(), at->ai_addr, at->ai_addrlen) == 0) return;
        failure = errno;
        if (failure != EINPROGRESS) continue;
        failure = ETIMEDOUT;
        if (!ready(POLLOUT, patience)) continue;
        socklen_t size = sizeof failure;
        ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
        if (failure == 0) return;
    }
    cannotConnect(failure);
}

void ClientConnection::watchPeer(milliseconds dead_peer) const {
    const auto set = [this](int level, int name, long value) {
        const int number = static_cast<int>(value);
        ::setsockopt(fd_.get(), level, name, &number, sizeof number);
    };
    // Keepalive finds a dead peer while nothing is sent; the other limit finds it while something
    // is sent.
    constexpr long kProbes = 3;
    const long probe = std::max(1L, std::chrono::ceil<std::chrono::seconds>(dead_peer).count() / 4);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, probe);
    set(IPPROTO_TCP, TCP_KEEPINTVL, probe);
    set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, dead_peer.count());
}

void ClientConnection::handshake(const Endpoint& endpoint, const Patience& patience) {
    ssl_.reset(::SSL_new(endpoint.tls->get()));
    if (!ssl_) throw std::bad_alloc();
    // An IP address is checked against the certificate's addresses, a name against its names.
    X509_VERIFY_PARAM* expected = ::SSL_get0_param(ssl_.get());
    if (::X509_VERIFY_PARAM_set1_ip_asc(expected, endpoint.host.c_str()) != 1) {
        ::SSL_set1_host(ssl_.get(), endpoint.host.c_str());
        ::SSL_set_tlsext_host_name(ssl_.get(), endpoint.host.c_str());
    }
    ::ERR_clear_error();
    if (::SSL_set_fd(ssl_.get(), fd_.get()) != 1) throw lost(tlsReason());
    for (int result = 0; (result = ::SSL_connect(ssl_.get())) != 1;) {
        if (::SSL_get_error(ssl_.get(), result) == SSL_ERROR_SSL) throw refused(endpoint);
        if (!waitTls(result, patience)) throw lost("closed the TLS handshake");
    }
}

ExchangeError ClientConnection::refused(const Endpoint& endpoint) const {
    const std::string reason = tlsReason();
    const long verdict = ::SSL_get_verify_result(ssl_.get());
    if (verdict == X509_V_OK) {
        return {ExchangeError::Kind::Connect, name_ + " " + reason, reason};
    }
    const bool other_name =
        verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
    const std::string why = other_name ? "it is not for " + endpoint.host
                                       : std::string(::X509_verify_cert_error_string(verdict));
    return {ExchangeError::Kind::Distrust,
            "the certificate of " + name_ + " is not accepted: " + why,
            "has no certificate that is accepted: " + why};
}

void ClientConnection::tunnel(const Endpoint& endpoint, const Patience& patience) {
    constexpr std::size_t kMostHead = 16U << 10U;
    const bool six = endpoint.host.find(':') != std::string::npos;
    const std::string target =
        (six ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
    std::string ask = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
    if (!endpoint.proxy->authorization.empty()) {
        ask += "Proxy-Authorization: " + endpoint.proxy->authorization + "\r\n";
    }
    write(ask + "\r\n", patience);
    std::string head;
    // Reads byte by byte: the bytes after the head belong to the server.
    for (char c = 0; !head.ends_with("\r\n\r\n") && head.size() < kMostHead; head += c) {
        if (read(&c, 1, patience) == 0) throw lost("closed the connection");
    }
    if (head.starts_with("HTTP/1.") && head.substr(8, 5) == " 200 ") return;
    const std::string answer = head.substr(0, head.find('\r'));
    throw ExchangeError(ExchangeError::Kind::Connect,
                        "cannot connect to " + name_ + ": the proxy answered " + answer,
                        "the proxy answered " + answer);
}

bool ClientConnection::ready(short events, const Patience& patience) const {
    const SystemClock clock;
    TimePoint end = patience.until;
    if (patience.silence.count() > 0) end = std::min(end, clock.now() + patience.silence);
    const long most = patience.stop == nullptr ? 60'000 : 200;
    for (;;) {
        if (patience.stop != nullptr && *patience.stop) {
            throw ExchangeError(ExchangeError::Kind::Stopped, "the server is shutting down");
        }
        long left = most;
        if (end != TimePoint::max()) {
            left = std::chrono::ceil<milliseconds>(end - clock.now()).count();
        }
        pollfd polled{fd_.get(), events, 0};
        const int found =
            left <= 0 ? 0 : ::poll(&polled, 1, static_cast<int>(std::min(left, most)));
        if (found > 0) return true;
        if (found < 0 && errno != EINTR) throwErrno("poll", name_);
        if (left > 0) continue;
        if (end == patience.until) throw late();
        return false;
    }
}

void ClientConnection::wait(short events, const Patience& patience) const {
    if (!ready(events, patience)) throw late();
}

bool ClientConnection::waitTls(int result, const Patience& patience) const {
    const int wrong = errno;
    switch (::SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            wait(POLLIN, patience);
            return true;
        case SSL_ERROR_WANT_WRITE:
            wait(POLLOUT, patience);
            return true;
        case SSL_ERROR_ZERO_RETURN:
            return false;
        case SSL_ERROR_SYSCALL:
            if (wrong == EINTR) return true;
            if (wrong == 0) return false;
            throw lost(broke(wrong));
        default:
            throw lost(tlsReason());
    }
}

void ClientConnection::write(std::string_view bytes, const Patience& patience) {
    while (!bytes.empty()) {
        const auto size = static_cast<int>(std::min<std::size_t>(bytes.size(), kMaxPiece));
        if (ssl_) {
            ::ERR_clear_error();
            errno = 0;
            const int n = ::SSL_write(ssl_.get(), bytes.data(), size);
            if (n > 0) {
                bytes.remove_prefix(static_cast<std::size_t>(n));
            } else if (!waitTls(n, patience)) {
                throw lost("closed the connection");
            }
            continue;
        }
        const ssize_t n =
            ::send(fd_.get(), bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {
            wait(POLLOUT, patience);
        } else if (errno != EINTR) {
            throw lost(broke(errno));
        }
    }
}

std::size_t ClientConnection::read(char* out, std::size_t size, const Patience& patience) {
    for (;;) {
        if (ssl_) {
            ::ERR_clear_error();
            errno = 0;
            const int n = ::SSL_read(ssl_.get(), out,
                                     static_cast<int>(std::min<std::size_t>(size, kMaxPiece)));
            if (n > 0) return static_cast<std::size_t>(n);
            if (!waitTls(n, patience)) return 0;
            continue;
        }
        if (!more_) wait(POLLIN, patience);
        const ssize_t n = ::recv(fd_.get(), out, size, 0);
        more_ = n == static_cast<ssize_t>(size);
        if (n >= 0) return static_cast<std::size_t>(n);
        if (errno != EAGAIN && errno != EINTR) throw lost(broke(errno));
    }
}

bool ClientConnection::quiet() const noexcept {
    pollfd entry{fd_.get(), POLLIN | POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) == 0;
}

ClientConnection::Moved ClientConnection::movedTls(int result, int own) const noexcept {
    if (result > 0) return {.bytes = static_cast<std::size_t>(result)};
    const int wrong = errno;
    const int why = ::SSL_get_error(ssl_.get(), result);
    if (why == own || (why == SSL_ERROR_SYSCALL && wrong == EINTR)) return {};
    const bool other = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    return {.ended = !other, .wants_other = other};
}

ClientConnection::Moved ClientConnection::readSome(char* out, std::size_t size) noexcept {
    if (ssl_) {
        ::ERR_clear_error();
        errno = 0;
        const auto most = static_cast<int>(std::min<std::size_t>(size, kMaxPiece));
        return movedTls(::SSL_read(ssl_.get(), out, most), SSL_ERROR_WANT_READ);
    }
    const ssize_t n = ::recv(fd_.get(), out, size, 0);
    if (n > 0) return {.bytes = static_cast<std::size_t>(n)};
    return {.ended = n == 0 || (errno != EAGAIN && errno != EINTR)};
}

ClientConnection::Moved ClientConnection::writeSome(std::string_view bytes) noexcept {
    if (ssl_) {
        ::ERR_clear_error();
        errno = 0;
        const auto most = static_cast<int>(std::min<std::size_t>(bytes.size(), kMaxPiece));
        return movedTls(::SSL_write(ssl_.get(), bytes.data(), most), SSL_ERROR_WANT_WRITE);
    }
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) return {.bytes = static_cast<std::size_t>(n)};
    return {.ended = n < 0 && errno != EAGAIN && errno != EINTR};
}

}  // namespace hearth::http
