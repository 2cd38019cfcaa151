#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/http/ByteRange.h"
#include "base/http/RequestHead.h"
#include "controller/egress/credentials/AuthorizedCall.h"
#include "controller/egress/credentials/Keyring.h"
#include "controller/egress/mirror/PackageMirror.h"
#include "controller/egress/policy/WorkspaceEgress.h"
#include "controller/egress/transport/ByteStream.h"
#include "controller/egress/transport/Dialer.h"
#include "controller/egress/transport/TlsStream.h"

namespace hearth::egress {

/// The facts that all connections of a workspace share.
struct ProxyFacts {
    WorkspaceEgress& egress;
    const Dialer& dialer;
    PackageMirror* mirror = nullptr;   ///< may be null
    const Keyring* keyring = nullptr;  ///< may be null
    std::string ca_file;  ///< extra authorities to trust, besides the system's; may be empty
    const Clock& clock;
};

/// One connection that tenant code made to its egress port: HTTP/1.1, as a server for mirrored
/// indexes ("GET /pypi/…"), as a proxy for the rest ("GET http://…", CONNECT). A tunnel to a host
/// that has credentials ends here: its requests are read and get the credentials. All bytes from
/// the tenant are hostile. Used by one thread.
class ProxyConnection {
public:
    /// `fd` is non-blocking and not owned. `reset` is called when closing `fd` afterwards must not
    /// look like the end of an answer.
    ProxyConnection(int fd, const ProxyFacts& facts, std::function<void()> reset);

    /// Serves until either side ends the connection. Throws only unexpected errors.
    void run();

private:
    /// The time left until `until`. Throws StreamBroken if none is left.
    std::chrono::milliseconds patience(TimePoint until) const;
    /// Reads the next request's head; false at the end of the connection.
    bool readHead();
    /// Answers the request that was read; true if another may follow.
    bool serve();
    EgressKind kind() const;
    bool serveMirror(EgressEntry& entry);
    bool forward(EgressEntry& entry);
    bool tunnel(EgressEntry& entry);
    /// Reads the whole TLS hello; faults go into the entry.
    bool readHello(const Destination& destination, EgressEntry& entry);
    /// From now on, requests in this tunnel are read and get credentials.
    void intercept(const Destination& destination);
    bool authorized(const Destination& destination, bool tls, EgressEntry& entry);
    /// Sends the bytes that were read ahead, then relays; the sum goes into the entry.
    void carry(const Fd& outside, std::string_view first, std::uint64_t most_sent,
               EgressEntry& entry);
    void answer(int status, const std::string& type, const std::string& text, bool keep_alive,
                const std::string& note = {});
    /// True if the request asks for a part of the file that this tag names.
    bool wantsPart(const std::string& etag) const;
    /// Returns whether another request may follow.
    bool sendFile(const MirrorAnswer& reply, EgressEntry& entry);
    void sendPart(CachedFile& file, const ByteRange& part, EgressEntry& entry);

    const int fd_;
    const ProxyFacts& facts_;
    const std::function<void()> reset_;
    SocketStream socket_;
    std::optional<TlsStream> tls_;            ///< over the socket, once intercepted
    std::optional<Destination> intercepted_;  ///< the destination of the requests in the tunnel
    std::optional<AuthorizedCall> call_;
    ByteStream* stream_ = &socket_;  ///< the stream that requests come from and answers go to
    bool broken_ = false;            ///< an answer was cut off: its end must not look complete
    std::string buffer_;             ///< bytes read and not yet used
    RequestHead head_;
};

}  // namespace hearth::egress
