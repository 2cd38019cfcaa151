#pragma once

#include "api/http/Core.h"
#include "api/http/Exchange.h"
#include "api/http/HeadQueue.h"
#include "api/http/Loop.h"
#include "api/http/Wire.h"

namespace hearth::api {

/// Answers requests in one thread, one connection at a time.
class Worker {
public:
    Worker(Core& core, HeadQueue& queue, Loop& loop) : core_(core), queue_(queue), loop_(loop) {}

    /// Serves until the queue is closed and empty.
    void run();

private:
    /// Answers this request and those that follow it at once, then gives the connection back.
    void serve(Connection& connection);
    Connection::Next answer(Connection& connection);
    /// Whether the next request is there within the linger time.
    bool another(Connection& connection);

    Response ask(Exchange& exchange, const Connection& connection);
    /// What `make` answers; the one catch.
    Response guarded(const Exchange& exchange, const std::function<Response()>& make);
    Connection::Next send(Exchange& exchange, Connection& connection, Response& response);
    Connection::Next sendWhole(Exchange& exchange, Connection& connection, const Response& response,
                               std::string_view body);
    Connection::Next sendPieces(Exchange& exchange, Connection& connection, Response& response,
                                const BodyWriter& writer);
    Connection::Next sendStream(Exchange& exchange, Connection& connection, Response& response,
                                const StreamStarter& starter);
    /// After a whole answer: what becomes of the connection.
    Connection::Next settle(Exchange& exchange, Connection& connection);
    Framing framing(const Exchange& exchange, const Connection& connection);
    void count(Exchange& exchange, const Response& response);

    Core& core_;
    HeadQueue& queue_;
    Loop& loop_;
    IdSource ids_;
    DateLine date_;
    bool given_away_ = false;  ///< the connection has become a stream
};

}  // namespace hearth::api
