#pragma once

#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/http/RequestHead.h"
#include "controller/broker/ByteStream.h"
#include "controller/broker/Dialer.h"
#include "controller/broker/Mirror.h"
#include "controller/broker/WorkspaceEgress.h"

namespace hearth::broker {

/// One connection that tenant code made to its broker's port: HTTP/1.1, as a server for what is
/// mirrored ("GET /pypi/…"), as a proxy for the rest ("GET http://…", CONNECT). Everything that
/// comes from it is hostile. Used by one thread.
class ProxyConnection {
public:
    /// `fd` is non-blocking and not owned; `mirror` may be null.
    ProxyConnection(int fd, WorkspaceEgress& egress, const Dialer& dialer, Mirror* mirror,
                    const Clock& clock);

    /// Serves until either side has had enough. Throws nothing but what it cannot know.
    void run();

private:
    /// What is left until then. Throws StreamBroken when nothing is.
    std::chrono::milliseconds patience(TimePoint until) const;
    /// The next request's head; false at the end of the connection.
    bool readHead();
    /// Answers what has been read; true if another may follow.
    bool serve();
    bool serveMirror(EgressEntry& entry);
    void forward(EgressEntry& entry);
    void tunnel(EgressEntry& entry);
    /// Sends what was read ahead and then relays; the sum goes into the entry.
    void carry(const Fd& outside, std::string_view first, std::uint64_t most_sent,
               EgressEntry& entry);
    void answer(int status, const std::string& type, const std::string& text, bool keep_alive,
                const std::string& note = {});
    void sendFile(CachedFile& file, bool keep_alive, EgressEntry& entry);

    const int fd_;
    SocketStream stream_;
    WorkspaceEgress& egress_;
    const Dialer& dialer_;
    Mirror* const mirror_;
    const Clock& clock_;
    std::string buffer_;  ///< read and not yet used
    RequestHead head_;
};

}  // namespace hearth::broker
