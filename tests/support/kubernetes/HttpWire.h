#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/Fd.h"

namespace hearth::test {

/// A received request.
struct SeenRequest {
    std::string method;
    std::string target;
    std::string path;                            ///< decoded
    std::map<std::string, std::string> query;    ///< decoded
    std::map<std::string, std::string> headers;  ///< names in lower case
    std::string body;

    std::string header(const std::string& name) const;
    std::string param(const std::string& name) const;
};

/// One accepted connection, plain or TLS, used by the thread that serves it.
class ServedConnection {
public:
    /// Throws std::runtime_error if the client does not finish the handshake.
    ServedConnection(Fd fd, SSL_CTX* tls);

    /// Returns the next request; nullopt at the end of the connection.
    std::optional<SeenRequest> request();
    /// Returns false once the client has gone.
    bool send(std::string_view bytes);
    /// Breaks the connection without the usual end of TLS or of chunks.
    void cut();
    /// True if the client has closed its side.
    bool gone() const;
    int fd() const { return fd_.get(); }

private:
    long readSome(char* out, std::size_t size);

    Fd fd_;
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
    std::string unread_;
};

/// Listens on a free port of 127.0.0.1, with a thread per connection. Its end breaks all
/// connections and waits for their threads.
class HttpListener {
public:
    /// Serves one connection to its end; called by the connection's thread.
    using Serve = std::function<void(ServedConnection&)>;

    /// `tls` empty: plain HTTP.
    HttpListener(std::shared_ptr<SSL_CTX> tls, Serve serve);
    ~HttpListener();
    HttpListener(const HttpListener&) = delete;
    HttpListener& operator=(const HttpListener&) = delete;

    std::uint16_t port() const { return port_; }
    /// Returns "http://127.0.0.1:PORT", or with https.
    std::string url() const;
    /// Breaks the open connections.
    void cutAll();
    /// Accepts no more connections, and breaks the open ones.
    void shut();

private:
    void accept(const std::stop_token& stop);

    std::shared_ptr<SSL_CTX> tls_;
    Serve serve_;
    Fd socket_;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    std::map<int, int> open_;  ///< descriptors by connection number
    int number_ = 0;
    std::list<std::jthread> threads_;
    std::jthread acceptor_;
};

}  // namespace hearth::test
