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

/// A request as it came.
struct SeenRequest {
    std::string method;
    std::string target;
    std::string path;                            ///< decoded
    std::map<std::string, std::string> query;    ///< decoded
    std::map<std::string, std::string> headers;  ///< names in small letters
    std::string body;

    std::string header(const std::string& name) const;
    std::string param(const std::string& name) const;
};

/// One accepted connection, plain or TLS, of the thread that serves it.
class ServedConnection {
public:
    /// Throws std::runtime_error if the client does not finish the handshake.
    ServedConnection(Fd fd, SSL_CTX* tls);

    /// nullopt at the end of the connection.
    std::optional<SeenRequest> request();
    /// False once the client has gone.
    bool send(std::string_view bytes);
    /// Breaks the connection without any goodbye, of TLS or of chunks.
    void cut();
    /// The client has closed its side.
    bool gone() const;
    int fd() const { return fd_.get(); }

private:
    long readSome(char* out, std::size_t size);

    Fd fd_;
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
    std::string unread_;
};

/// Listens on a free port of 127.0.0.1, a thread a connection. Its end breaks all connections and
/// waits for their threads.
class HttpListener {
public:
    /// Serves one connection to its end; called by its thread.
    using Serve = std::function<void(ServedConnection&)>;

    /// `tls` empty: plain HTTP.
    HttpListener(std::shared_ptr<SSL_CTX> tls, Serve serve);
    ~HttpListener();
    HttpListener(const HttpListener&) = delete;
    HttpListener& operator=(const HttpListener&) = delete;

    std::uint16_t port() const { return port_; }
    /// "http://127.0.0.1:PORT", or with https.
    std::string url() const;
    /// Breaks the connections that are open now.
    void cutAll();
    /// Accepts no connection more, and breaks those that are open.
    void shut();

private:
    void accept(const std::stop_token& stop);

    std::shared_ptr<SSL_CTX> tls_;
    Serve serve_;
    Fd socket_;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    std::map<int, int> open_;  ///< descriptors by number of the connection
    int number_ = 0;
    std::list<std::jthread> threads_;
    std::jthread acceptor_;
};

}  // namespace hearth::test
