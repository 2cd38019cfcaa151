#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// HTTP+SSE, the transport of 2024-11-05: a GET opens the stream that carries every message to the
/// client, and names the path to POST to; each POST is answered 202. A session lives as long as its
/// stream; started executions continue when it ends.
class SseTransport final : public api::Handler {
public:
    /// `messages_path`: the path of POSTs, "/messages". Both references must outlive the handler.
    SseTransport(McpContext& context, McpServer& server, std::string messages_path);

    /// GET opens a session, POST is a message.
    api::Response handle(api::Request& request) override;

private:
    struct Session;
    struct Table {
        Mutex mutex;
        std::map<std::string, std::shared_ptr<Session>> sessions HEARTH_GUARDED_BY(mutex);
    };

    api::Response open(api::Request& request);
    api::Response message(api::Request& request);
    /// Handles a POST that holds a place of the tenant's share.
    api::Response posted(api::Request& request, const controller::Principal& who,
                         const std::shared_ptr<Session>& session);
    void take(api::Request& request, const std::shared_ptr<Session>& session,
              const Message& message);

    McpContext& context_;
    McpServer& server_;
    const std::string messages_path_;
    const std::shared_ptr<Table> table_ = std::make_shared<Table>();  ///< shared with callbacks
};

}  // namespace hearth::mcp
