#pragma once

#include "api/http/front/EventLoop.h"
#include "api/http/front/Exchange.h"
#include "api/http/front/FrontContext.h"
#include "api/http/front/RequestQueue.h"
#include "api/http/front/ResponseHead.h"

namespace hearth::api {

/// Answers requests in one thread, one connection at a time.
class Worker {
public:
    Worker(FrontContext& core, RequestQueue& queue, EventLoop& loop)
        : core_(core), queue_(queue), loop_(loop) {}

    /// Serves until the queue is closed and empty.
    void run();

private:
    /// Answers this request and those right after it, then gives the connection back.
    void serve(Connection& connection);
    Connection::Next answer(Connection& connection);
    /// True if the next request arrives within the linger time.
    bool another(Connection& connection);

    /// Takes a place for a stream; false if there is none.
    bool placeStream(const Exchange& exchange, Connection& connection, bool news);
    Response ask(Exchange& exchange, const Connection& connection);
    /// The answer of the request's handler.
    Response handled(Exchange& exchange);
    /// Returns the answer of `make`; has the one catch.
    Response guarded(const Exchange& exchange, const std::function<Response()>& make);
    Connection::Next send(Exchange& exchange, Connection& connection, Response& response);
    Connection::Next sendWhole(Exchange& exchange, Connection& connection, const Response& response,
                               std::string_view body);
    Connection::Next sendPieces(Exchange& exchange, Connection& connection, Response& response,
                                const BodyWriter& writer);
    Connection::Next sendStream(Exchange& exchange, Connection& connection, Response& response,
                                const StreamStarter& starter);
    Framing framing(const Exchange& exchange, const Connection& connection);
    /// Reports an answer that is about to be sent, or that has failed.
    void count(Exchange& exchange, Connection& connection, const Response& response);

    FrontContext& core_;
    RequestQueue& queue_;
    EventLoop& loop_;
    IdSource ids_;
    DateText date_;
    bool given_away_ = false;  ///< the connection has become a stream
};

}  // namespace hearth::api
