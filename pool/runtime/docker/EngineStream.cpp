#include "pool/runtime/docker/EngineStream.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/Error.h"

namespace hearth::pool::docker {
namespace {

constexpr int kMaxPiece = 1 << 20;

Error unavailable(const std::string& name, const std::string& why) {
    return Error(ErrorCode::Unavailable, "the Docker Engine at " + name + " " + why)
        .hint("see that dockerd runs and that DOCKER_HOST names it");
}

Error cannotConnect(const std::string& name, int error) {
    if (error == EACCES || error == EPERM) {
        return Error(ErrorCode::Unavailable, "the socket " + name + " may not be opened")
            .hint("start hearth as root, or as a user of the group that owns the socket");
    }
    return unavailable(name, error == ENOENT || error == ECONNREFUSED
                                 ? "does not run"
                                 : std::string("cannot be reached: ") + std::strerror(error));
}

std::string tlsReason() {
    char text[256] = "unknown";
    ::ERR_error_string_n(::ERR_peek_last_error(), text, sizeof text);
    ::ERR_clear_error();
    return text;
}

[[noreturn]] void badFile(const std::string& path) {
    throw Error(ErrorCode::InvalidArgument, "TLS to Docker: " + path + " cannot be used")
        .hint("DOCKER_CERT_PATH must hold ca.pem, cert.pem and key.pem, readable for the server");
}

struct FreeAddresses {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

}  // namespace

TlsContext::TlsContext(const EngineAddress& address)
    : context_(::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free) {
    if (!context_) throw std::bad_alloc();
    ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_mode(context_.get(),
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    const std::string folder = address.certificates + "/";
    const std::string certificate = folder + "cert.pem";
    if (::access(certificate.c_str(), F_OK) == 0 || address.verify) {
        if (::SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) != 1) {
            badFile(certificate);
        }
        const std::string key = folder + "key.pem";
        if (::SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
            badFile(key);
        }
    }
    if (!address.verify) return;
    const std::string authority = folder + "ca.pem";
    if (::SSL_CTX_load_verify_locations(context_.get(), authority.c_str(), nullptr) != 1) {
        badFile(authority);
    }
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
}

EngineStream::EngineStream(const EngineAddress& address, const TlsContext* tls, TimePoint until)
    : name_(address.text()), ssl_(nullptr, &::SSL_free) {
    if (!address.socket.empty()) {
        connectUnix(address);
    } else {
        connectTcp(address, until);
        if (tls != nullptr) handshake(address, *tls, until);
    }
}

void EngineStream::connectUnix(const EngineAddress& address) {
    fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_) throwErrno("socket");
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (address.socket.size() >= sizeof where.sun_path) throw cannotConnect(name_, ENAMETOOLONG);
    std::copy(address.socket.begin(), address.socket.end(), where.sun_path);
    // Never in progress: the other side's queue takes it, or is full.
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
        if (errno == EAGAIN) throw unavailable(name_, "takes no more connections");
        throw cannotConnect(name_, errno);
    }
}

void EngineStream::connectTcp(const EngineAddress& address, TimePoint until) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* raw = nullptr;
    const std::string port = std::to_string(address.port);
    if (const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &raw)) {
        throw unavailable(name_, std::string("is not found: ") + ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, FreeAddresses> list(raw);
    int failure = ECONNREFUSED;
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
        fd_ = Fd(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!fd_) throwErrno("socket");
        if (::connect(fd_.get(), at->ai_addr, at->ai_addrlen) == 0) return;
        failure = errno;
        if (failure != EINPROGRESS) continue;
        wait(POLLOUT, until);
        socklen_t size = sizeof failure;
        ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
        if (failure == 0) return;
    }
    throw cannotConnect(name_, failure);
}

void EngineStream::handshake(const EngineAddress& address, const TlsContext& tls, TimePoint until) {
    ssl_.reset(::SSL_new(tls.get()));
    if (!ssl_) throw std::bad_alloc();
    // A number is checked against the certificate's addresses, a name against its names.
    X509_VERIFY_PARAM* expected = ::SSL_get0_param(ssl_.get());
    if (::X509_VERIFY_PARAM_set1_ip_asc(expected, address.host.c_str()) != 1) {
        ::SSL_set1_host(ssl_.get(), address.host.c_str());
        ::SSL_set_tlsext_host_name(ssl_.get(), address.host.c_str());
    }
    ::ERR_clear_error();
    if (::SSL_set_fd(ssl_.get(), fd_.get()) != 1) throw unavailable(name_, tlsReason());
    for (int result = 0; (result = ::SSL_connect(ssl_.get())) != 1;) {
        if (!waitTls(result, until)) throw unavailable(name_, "closed the TLS handshake");
    }
}

void EngineStream::wait(short events, TimePoint until) const {
    const long most = stop_ == nullptr ? 60'000 : 200;
    for (;;) {
        if (stop_ != nullptr && *stop_) {
            throw Error(ErrorCode::Unavailable, "the server is shutting down");
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SystemClock().now());
        pollfd polled{fd_.get(), events, 0};
        const int ready =
            left.count() <= 0
                ? 0
                : ::poll(&polled, 1, static_cast<int>(std::min<long>(left.count(), most)));
        if (ready > 0) return;
        if (ready < 0 && errno != EINTR) throwErrno("poll", name_);
        if (left.count() <= 0) {
            throw Error(ErrorCode::Deadline, "the Docker Engine at " + name_ + " does not answer")
                .hint("see what dockerd does; restart it if it hangs");
        }
    }
}

bool EngineStream::waitTls(int result, TimePoint until) const {
    const int wrong = errno;
    switch (::SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            wait(POLLIN, until);
            return true;
        case SSL_ERROR_WANT_WRITE:
            wait(POLLOUT, until);
            return true;
        case SSL_ERROR_ZERO_RETURN:
            return false;
        case SSL_ERROR_SYSCALL:
            if (wrong == EINTR) return true;
            if (wrong == 0) return false;
            throw unavailable(name_, std::string("broke the connection: ") + std::strerror(wrong));
        default:
            throw unavailable(name_, "refuses TLS: " + tlsReason());
    }
}

void EngineStream::write(std::string_view bytes, TimePoint until) {
    while (!bytes.empty()) {
        const auto size = static_cast<int>(std::min<std::size_t>(bytes.size(), kMaxPiece));
        if (ssl_) {
            ::ERR_clear_error();
            errno = 0;
            const int n = ::SSL_write(ssl_.get(), bytes.data(), size);
            if (n > 0) {
                bytes.remove_prefix(static_cast<std::size_t>(n));
            } else if (!waitTls(n, until)) {
                throw unavailable(name_, "closed the connection");
            }
            continue;
        }
        const ssize_t n =
            ::send(fd_.get(), bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {
            wait(POLLOUT, until);
        } else if (errno != EINTR) {
            throw unavailable(name_, std::string("broke the connection: ") + std::strerror(errno));
        }
    }
}

std::size_t EngineStream::read(char* out, std::size_t size, TimePoint until) {
    for (;;) {
        if (ssl_) {
            ::ERR_clear_error();
            errno = 0;
            const int n = ::SSL_read(ssl_.get(), out,
                                     static_cast<int>(std::min<std::size_t>(size, kMaxPiece)));
            if (n > 0) return static_cast<std::size_t>(n);
            if (!waitTls(n, until)) return 0;
            continue;
        }
        const ssize_t n = ::recv(fd_.get(), out, size, 0);
        if (n >= 0) return static_cast<std::size_t>(n);
        if (errno == EAGAIN) {
            wait(POLLIN, until);
        } else if (errno != EINTR) {
            throw unavailable(name_, std::string("broke the connection: ") + std::strerror(errno));
        }
    }
}

EngineStream::Moved EngineStream::movedTls(int result, int own) const noexcept {
    if (result > 0) return {.bytes = static_cast<std::size_t>(result)};
    const int wrong = errno;
    const int why = ::SSL_get_error(ssl_.get(), result);
    if (why == own || (why == SSL_ERROR_SYSCALL && wrong == EINTR)) return {};
    const bool other = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    return {.ended = !other, .wants_other = other};
}

EngineStream::Moved EngineStream::readSome(char* out, std::size_t size) noexcept {
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

EngineStream::Moved EngineStream::writeSome(std::string_view bytes) noexcept {
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

}  // namespace hearth::pool::docker
