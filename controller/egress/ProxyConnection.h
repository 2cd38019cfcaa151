#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/http/RequestHead.h"
#include "controller/egress/credentials/AuthorizedCall.h"
#include "controller/egress/credentials/Keyring.h"
#include "controller/egress/mirror/PackageMirror.h"
#include "controller/egress/policy/WorkspaceEgress.h"
#include "controller/egress/transport/ByteStream.h"
#include "controller/egress/transport/Dialer.h"
#include "controller/egress/transport/TlsStream.h"

namespace hearth::broker {

/// Shared by all connections of a workspace.
struct ProxyFacts {
    WorkspaceEgress& egress;
    const Dialer& dialer;
    PackageMirror* mirror = nullptr;   ///< may be null
    const Keyring* keyring = nullptr;  ///< may be null
    std::string ca_file;  ///< extra authorities to trust, besides the system's; may be empty
    const Clock& clock;
};

/// One connection that tenant code made to its broker's port: HTTP/1.1, as a server for what is
/// mirrored ("GET /pypi/…"), as a proxy for the rest ("GET http://…", CONNECT). A tunnel to a host
/// that there are credentials for ends here: the requests in it are read, and get them. Everything
/// that comes from it is hostile. Used by one thread.
class ProxyConnection {
public:
    /// `fd` is non-blocking and not owned. `reset` is called where its closing afterwards must not
    /// look like the end of an answer.
    ProxyConnection(int fd, const ProxyFacts& facts, std::function<void()> reset);

    /// Serves until either side has had enough. Throws nothing but what it cannot know.
    void run();

private:
    /// The time left until then. Throws StreamBroken if none is.
    std::chrono::milliseconds patience(TimePoint until) const;
    /// The next request's head; false at the end of the connection.
    bool readHead();
    /// Answers what has been read; true if another may follow.
    bool serve();
    EgressKind kind() const;
    bool serveMirror(EgressEntry& entry);
    bool forward(EgressEntry& entry);
    bool tunnel(EgressEntry& entry);
    /// Reads the whole TLS hello; faults go into the entry.
    bool readHello(const Destination& destination, EgressEntry& entry);
    /// From here on requests to this host are read and get credentials.
    void intercept(const Destination& destination);
    bool authorized(const Destination& destination, bool tls, EgressEntry& entry);
    /// Sends the bytes read ahead and then relays; the sum goes into the entry.
    void carry(const Fd& outside, std::string_view first, std::uint64_t most_sent,
               EgressEntry& entry);
    void answer(int status, const std::string& type, const std::string& text, bool keep_alive,
                const std::string& note = {});
    /// Whether another request may follow.
    bool sendFile(CachedFile& file, bool keep_alive, EgressEntry& entry);

    const int fd_;
    const ProxyFacts& facts_;
    const std::function<void()> reset_;
    SocketStream socket_;
    std::optional<TlsStream> tls_;            ///< over the socket, once intercepted
    std::optional<Destination> intercepted_;  ///< where the requests in it go
    std::optional<AuthorizedCall> call_;
    ByteStream* stream_ = &socket_;  ///< where requests come from and answers go
    bool broken_ = false;            ///< in the middle of an answer: its end must not look whole
    std::string buffer_;             ///< read and not yet used
    RequestHead head_;
};

}  // namespace hearth::broker
