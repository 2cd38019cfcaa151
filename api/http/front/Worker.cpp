#include "api/http/front/Worker.h"

#include <algorithm>
#include <array>

#include "api/http/Problem.h"
#include "api/http/RequestSpan.h"
#include "api/http/front/SocketWriter.h"
#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::api {
namespace {

using Next = Connection::Next;

constexpr std::array<std::string_view, 7> kMethods{"GET",   "HEAD",   "POST",   "PUT",
                                                   "PATCH", "DELETE", "OPTIONS"};
/// The headers of an answer that a page may read, in addition to the always readable ones.
constexpr const char* kExposedHeaders =
    "ETag, Idempotency-Replayed, Location, Mcp-Session-Id, RateLimit-Limit, RateLimit-Remaining, "
    "RateLimit-Reset, Retry-After, Server-Timing, WWW-Authenticate, X-Request-Id";
/// Small bodies are copied after their head: one buffer is cheaper than two.
constexpr std::size_t kJoinUpTo = 4096;
/// A longer answer counts for its tenant until the client has taken it.
constexpr std::size_t kLongAnswer = 128U << 10U;

Error unreadAnswers() {
    return Error(ErrorCode::RateLimited, "too much of earlier answers has not been read")
        .hint("read the answers on your other connections, or close these")
        .retryAfter(std::chrono::seconds(1));
}

Next afterAnswer(const Connection& connection) {
    return connection.keep ? Next::Park : Next::Close;
}

}  // namespace

void Worker::run() {
    while (Connection* connection = queue_.pop()) serve(*connection);
}

void Worker::serve(Connection& connection) {
    while (true) {
        given_away_ = false;
        Next next = Next::Abort;
        std::string failure;
        try {
            next = answer(connection);
            // The loop logs all other answers.
            const bool ended = !given_away_ && (next == Next::Park || next == Next::Close);
            if (ended) connection.tellAccess(core_.options.access, true);
        } catch (const ClientGone&) {
            next = Next::Abort;  // counted with the code of its answer
        } catch (const std::exception& e) {
            failure = e.what();
        } catch (...) {
            failure = "something that is no exception";
        }
        if (!failure.empty()) core_.log.error("http.answer_failed", {{"error", failure}});
        if (given_away_) return;
        if (next != Next::Park || !another(connection)) {
            loop_.giveBack(connection, next);
            return;
        }
    }
}

bool Worker::another(Connection& connection) {
    if (core_.stopping.load() || queue_.waiting()) return false;
    const auto ready = [&] {
        return connection.check(core_.options, core_.clock) == Connection::Readiness::Ready;
    };
    if (!connection.input.empty() && ready()) return true;
    if (!queue_.linger(connection.fd.get(), static_cast<int>(core_.options.linger.count()))) {
        return false;
    }
    return connection.receive() == Connection::Received::Some && ready();
}

Next Worker::answer(Connection& connection) {
    core_.busy.Increment();
    const ScopeExit answered([this] { core_.busy.Decrement(); });
    connection.head_done = false;  // it is taken: the next bytes of the input are another request
    // A suspended request continues where it stopped; any other is new.
    std::unique_ptr<Exchange> owned = std::move(connection.exchange);
    std::function<Response()> make = std::exchange(connection.suspension, {}).resume;
    if (!owned) {
        owned = std::make_unique<Exchange>(connection, core_, ids_);
        make = [&] { return ask(*owned, connection); };
    } else if (!owned->right().holds(core_.clock)) {
        make = [&exchange = *owned]() -> Response {
            exchange.requireRight();
            return {};
        };
    }
    Exchange& exchange = *owned;
    connection.keep = connection.head.keep_alive && !core_.stopping.load();
    connection.peer_may_send = false;
    Response response = guarded(exchange, make);
    if (auto* suspension = std::get_if<Suspension>(&response.body)) {
        if (!connection.wait_place) connection.wait_place = core_.waits.take(exchange.tenant());
        connection.wait_bytes.reset();
        connection.wait_bytes =
            core_.waiting_bytes.take(exchange.tenant(), exchange.body().received());
        if (connection.wait_place && connection.wait_bytes) {
            connection.suspension = std::move(*suspension);
            connection.right = exchange.right();
            connection.exchange = std::move(owned);
            return Next::Suspend;
        }
        core_.metrics.httpRefused("waits");
        response = guarded(exchange, [give_up = std::move(suspension->give_up)]() -> Response {
            if (give_up) return give_up();
            throw Error(ErrorCode::Unavailable, "too many requests wait")
                .retryAfter(std::chrono::seconds(5));
        });
    }
    connection.wait_place.reset();
    connection.wait_bytes.reset();
    if (std::holds_alternative<StreamStarter>(response.body) && connection.head.method != "HEAD" &&
        !placeStream(exchange, connection, response.news)) {
        core_.metrics.httpRefused("streams");
        const std::string route = response.route;
        response = problem(Error(ErrorCode::Unavailable, "too many streams are open")
                               .retryAfter(std::chrono::seconds(5)),
                           problemContext(exchange));
        response.route = route;
    }
    return send(exchange, connection, response);
}

bool Worker::placeStream(const Exchange& exchange, Connection& connection, bool news) {
    if (!news) {
        connection.stream_place = core_.streams.take(exchange.tenant());
        return connection.stream_place != nullptr;
    }
    const NewsPlaces::Taken taken =
        core_.news.take(exchange.tenant(), exchange.tokenId(), connection.id);
    connection.news_place = taken.place;
    if (taken.gave_up) {
        core_.metrics.httpRefused("streams_displaced");
        loop_.endNews(taken.gave_up->connection);
    }
    return connection.news_place != nullptr;
}

Response Worker::ask(Exchange& exchange, const Connection& connection) {
    switch (core_.rules.check(connection.head)) {
        case HostRules::Verdict::BadHost:
            core_.metrics.httpRefused("host");
            throw Error(ErrorCode::Forbidden, "this server does not answer for that Host")
                .hint("Use localhost, or allow the name in the server's configuration");
        case HostRules::Verdict::BadOrigin:
            core_.metrics.httpRefused("origin");
            throw Error(ErrorCode::Forbidden, "this Origin may not call the server")
                .hint(
                    "Allow the origin: serve --allowed-origins ORIGIN; a proxy must pass the Host "
                    "on, with its port");
        case HostRules::Verdict::Allowed:
            break;
    }
    if (connection.head.expect_other) {
        HttpProblem why;
        why.status = 417;
        why.error_code = "EXPECTATION_FAILED";
        why.title = "Expectation failed";
        why.message = "only 100-continue can be expected";
        return problem(why, problemContext(exchange));
    }
    const std::string origin = exchange.header("Origin").value_or("");
    if (!core_.rules.originShares(origin)) return handled(exchange);
    exchange.addAnswerHeader("Access-Control-Allow-Origin", origin);
    exchange.addAnswerHeader("Access-Control-Expose-Headers", kExposedHeaders);
    exchange.addAnswerHeader("Vary", "Origin");
    if (exchange.method() != "OPTIONS" || !exchange.header("Access-Control-Request-Method")) {
        return handled(exchange);
    }
    Response preflight;
    preflight.status = 204;
    preflight.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE"},
                         // Any header that the page wants to send: MCP's Mcp-Param- names are open.
                         {"Access-Control-Allow-Headers",
                          exchange.header("Access-Control-Request-Headers").value_or("")},
                         {"Access-Control-Max-Age", "600"}};
    return preflight;
}

Response Worker::handled(Exchange& exchange) {
    const std::unique_ptr<Poco::Net::HTTPRequestHandler> handler(
        core_.handlers->createRequestHandler(exchange));
    if (!handler) throw Error(ErrorCode::Unsupported, "nothing here answers this request");
    handler->handleRequest(exchange, exchange.response());
    return exchange.collected().take();
}

/// The one catch: every exception of a handler becomes an answer.
Response Worker::guarded(const Exchange& exchange, const std::function<Response()>& make) {
    const auto internal = [&](const char* what) {
        core_.log.error("http.handler_failed", {{"request", exchange.id()},
                                                {"method", exchange.method()},
                                                {"route", exchange.route()},
                                                {"error", what},
                                                {"trace", exchange.traceId()}});
        return problem(Error(ErrorCode::Internal, "the server failed to answer this request"),
                       problemContext(exchange));
    };
    try {
        return make();
    } catch (const Error& e) {
        return problem(e, problemContext(exchange));
    } catch (const std::exception& e) {
        return internal(e.what());
    } catch (...) {
        return internal("something that is no exception");
    }
}

Framing Worker::framing(const Exchange& exchange, const Connection& connection) {
    Framing framing;
    framing.request_id = exchange.id();
    framing.date = date_.at(core_.clock.wall());
    framing.http11 = connection.head.http11;
    framing.keep_alive = connection.keep;
    return framing;
}

void Worker::count(Exchange& exchange, Connection& connection, const Response& response) {
    exchange.tellAnswered(response);
    const std::string& route = response.route.empty() ? exchange.route() : response.route;
    const bool known =
        std::find(kMethods.begin(), kMethods.end(), exchange.method()) != kMethods.end();
    // Failures of the server itself: an absent or busy resource is none.
    const bool failed = response.status >= 500 && response.status != 501 && response.status != 503;
    if (failed) {
        core_.log.warn("http.failed", {{"request", exchange.id()},
                                       {"route", route},
                                       {"status", response.status},
                                       {"code", response.error_code},
                                       {"trace", exchange.traceId()}});
    }
    const std::string_view method = known ? std::string_view(exchange.method()) : "_OTHER";
    const double seconds = toSeconds(core_.clock.now() - exchange.startedAt());
    core_.metrics.http(route.empty() ? "other" : route, method, response.status, seconds,
                       core_.tracer.recorded(exchange.trace()));
    if (core_.tracer.records(exchange.trace())) {
        core_.tracer.end(requestSpan(
            exchange, response,
            {method, route, exchange.tenant(), exchange.parentSpan(), core_.clock.now()}));
    }
    if (core_.options.access != nullptr) {
        connection.access = std::make_unique<AccessEntry>(exchange.access());
        connection.access->route = route;
        connection.access->status = response.status;
        connection.access->error_code = response.error_code;
    }
    if (!core_.log.shows(metrics::LogLevel::Debug)) return;
    core_.log.debug("http.request", {{"request", exchange.id()},
                                     {"listener", core_.options.name},
                                     {"method", method},
                                     {"route", route},
                                     {"status", response.status},
                                     {"code", response.error_code},
                                     {"tenant", exchange.tenant()},
                                     {"seconds", seconds},
                                     {"trace", exchange.traceId()}});
}

Next Worker::send(Exchange& exchange, Connection& connection, Response& response) {
    BodyReader& body = exchange.body();
    if (core_.stopping.load()) connection.keep = false;
    exchange.complete(response);
    if (!body.finished() && !body.discardArrived(core_.options.drain_body)) {
        connection.keep = false;
        connection.peer_may_send = true;
    }
    try {
        // Checked before anything is sent, so that a bad header can still become an answer.
        checkResponse(response);
    } catch (const std::invalid_argument& e) {
        core_.log.error("http.bad_response", {{"request", exchange.id()}, {"error", e.what()}});
        connection.leaveStream();
        response = problem(Error(ErrorCode::Internal, "the server failed to answer this request"),
                           problemContext(exchange));
    }
    if (const auto* writer = std::get_if<BodyWriter>(&response.body)) {
        return sendPieces(exchange, connection, response, *writer);
    }
    if (const auto* starter = std::get_if<StreamStarter>(&response.body)) {
        return sendStream(exchange, connection, response, *starter);
    }
    const std::size_t size = std::get<std::string>(response.body).size();
    if (size > kLongAnswer) {
        connection.output_bytes = core_.unread_bytes.take(exchange.tenant(), size);
        if (!connection.output_bytes) response = problem(unreadAnswers(), problemContext(exchange));
    }
    return sendWhole(exchange, connection, response, std::get<std::string>(response.body));
}

Next Worker::sendWhole(Exchange& exchange, Connection& connection, const Response& response,
                       std::string_view body) {
    Framing frame = framing(exchange, connection);
    if (!bodiless(response.status)) frame.length = body.size();
    std::string head = renderHead(response, frame);
    if (bodiless(response.status) || connection.head.method == "HEAD") body = {};
    if (body.size() <= kJoinUpTo) {
        head.append(body);
        body = {};
    }
    count(exchange, connection, response);
    SocketWriter writer(connection.fd.get(), core_.options, core_.clock);
    std::size_t taken = writer.tryWrite(head, body);
    connection.sent(taken);
    if (taken == head.size() + body.size()) {
        connection.output_bytes.reset();
        return afterAnswer(connection);
    }
    // The loop writes the rest: a slow reader, even a refused one, costs no worker.
    connection.output.assign(head.substr(std::min(taken, head.size())));
    connection.output.append(body.substr(taken - std::min(taken, head.size())));
    connection.output_at = 0;
    return Next::Flush;
}

Next Worker::sendPieces(Exchange& exchange, Connection& connection, Response& response,
                        const BodyWriter& body) {
    const bool silent = bodiless(response.status) || connection.head.method == "HEAD";
    Framing frame = framing(exchange, connection);
    frame.length = response.length;
    frame.chunked = !response.length && connection.head.http11 && !bodiless(response.status);
    if (!response.length && !connection.head.http11) {
        connection.keep = false;
        frame.keep_alive = false;
    }
    SocketWriter writer(connection.fd.get(), core_.options, core_.clock);
    const ScopeExit sent([&] { connection.sent(writer.sent()); });
    std::string head = renderHead(response, frame);
    std::uint64_t written = 0;
    bool begun = false;
    const auto write = [&](std::string_view piece) {
        if (piece.empty()) return;
        exchange.requireRight();
        written += piece.size();
        if (response.length && written > *response.length) {
            throw std::length_error("the body is longer than was said");
        }
        std::string front = std::exchange(head, {});
        begun = true;
        if (frame.chunked) front.append(chunkLine(piece.size()));
        writer.write(front, piece, frame.chunked ? "\r\n" : "");
    };
    if (!silent) {
        try {
            body(write);
            if (response.length && written < *response.length) {
                throw std::length_error("the body is shorter than was said");
            }
        } catch (const ClientGone&) {
            count(exchange, connection, response);
            return Next::Abort;
        } catch (const std::exception& e) {
            if (begun) {
                core_.log.error("http.body_failed",
                                {{"request", exchange.id()}, {"error", e.what()}});
                count(exchange, connection, response);
                return Next::Abort;  // the client sees that the body is incomplete
            }
            const auto* known = dynamic_cast<const Error*>(&e);
            if (known == nullptr) {
                core_.log.error("http.handler_failed",
                                {{"request", exchange.id()}, {"error", e.what()}});
            }
            const std::string route = response.route;
            response = problem(known != nullptr ? *known
                                                : Error(ErrorCode::Internal,
                                                        "the server failed to answer this request"),
                               problemContext(exchange));
            response.route = route;
            return sendWhole(exchange, connection, response, std::get<std::string>(response.body));
        }
    }
    count(exchange, connection, response);
    writer.write(head, frame.chunked && !silent ? "0\r\n\r\n" : "");
    return afterAnswer(connection);
}

Next Worker::sendStream(Exchange& exchange, Connection& connection, Response& response,
                        const StreamStarter& starter) {
    Framing frame = framing(exchange, connection);
    frame.chunked = connection.head.http11 && !bodiless(response.status);
    if (!connection.head.http11) connection.keep = frame.keep_alive = false;
    const std::string head = renderHead(response, frame);
    count(exchange, connection, response);
    SocketWriter writer(connection.fd.get(), core_.options, core_.clock);
    if (connection.head.method == "HEAD") {
        writer.write(head);
        connection.sent(head.size());
        return afterAnswer(connection);
    }
    try {
        writer.write(head);
        connection.sent(head.size());
    } catch (const ClientGone&) {
        connection.leaveStream();
        return Next::Abort;
    }
    DetachedStream::Settings settings;
    settings.chunked = frame.chunked;
    settings.limit = core_.options.stream_buffer;
    settings.tenant = exchange.tenant();
    settings.unread = &core_.unread_bytes;
    settings.keepalive = response.keepalive;
    settings.keepalive_after = response.keepalive_after;
    settings.stall = core_.options.write_stall;
    const auto stream = std::make_shared<DetachedStream>(connection.fd.get(), connection.id, loop_,
                                                         core_.clock, std::move(settings));
    connection.stream = stream;
    connection.right = exchange.right();
    const std::string id = exchange.id();
    given_away_ = true;
    loop_.giveBack(connection, Next::Stream);  // from here on, use neither connection nor exchange
    try {
        starter(stream);
    } catch (const std::exception& e) {
        core_.log.error("http.stream_failed", {{"request", id}, {"error", e.what()}});
        stream->finish();
    } catch (...) {
        stream->finish();
        throw;  // serve() logs it
    }
    return Next::Stream;
}

}  // namespace hearth::api
