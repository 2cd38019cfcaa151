#include <charconv>
#include <nlohmann/json.hpp>

#include "api/rest/model/Answers.h"
#include "api/rest/model/EventShapes.h"
#include "api/rest/operations/Tables.h"
#include "api/rest/streams/LogStream.h"
#include "api/rest/streams/Sse.h"
#include "metrics/LogTail.h"

namespace hearth::rest {
namespace {

using controller::Role;
using controller::Services;
using metrics::LogTail;

Schema levelSchema() {
    return Schema::object()
        .required(
            "level",
            Schema::oneOf(metrics::kLogLevels.all()).describe("The lowest level that is written"))
        .named("LogLevel");
}

Json levelJson(const metrics::Log& log) {
    return {{"level", metrics::kLogLevels.of(log.level())}};
}

LogTail& tailOf(const Services& services) {
    if (LogTail* tail = services.log.tail()) return *tail;
    throw Error(ErrorCode::Unsupported, "this server keeps no lines of its log");
}

Operation linesOperation(const Services& services) {
    Operation op("GET", "/v1/logs", "listLogs", "The last lines of the server's log", "System");
    op.description =
        "The last mebibyte of it, oldest first. When it is full, the tenant with the most bytes in "
        "it loses its oldest line; lines without a tenant count by their event. With `Accept: "
        "text/event-stream` it goes on with new lines, as events `line`; a slow client misses "
        "lines that are no longer kept. `Last-Event-ID: 0` begins with the oldest line.";
    op.role = Role::Admin;
    op.parameters = {
        queryParameter("limit", Schema::integer(0, 1000).fallback(100),
                       "How many lines, the last ones; of a stream, to begin with"),
        headerParameter("Last-Event-ID", Schema::string(kDecimal), "The last id received")};
    op.answers = {
        {200, "Lines", listSchema<LogTail::Line>("LogLines")},
        {200, "The stream", {}, "text/event-stream", logEvents(schemaOf<LogTail::Line>())}};
    op.handle = [&services](Call& call) {
        LogTail& tail = tailOf(services);
        const auto most = call.queryOr<std::size_t>("limit", 100);
        std::uint64_t after = tail.before(most);
        if (wantsEventStream(call.request)) {
            // A line number of an earlier server has no meaning here.
            const std::uint64_t last = lastEventId(call.request).value_or(after);
            if (last <= tail.before(0)) after = last;
            api::Response response = sseResponse([&tail, after](std::shared_ptr<api::Stream> to) {
                LogStream::start(tail, after, std::move(to));
            });
            response.news = true;
            return response;
        }
        return jsonResponse(listJson(jsonOf(tail.after(after, most))));
    };
    return op;
}

}  // namespace

Operations logOperations(const Services& services) {
    Operations all;
    all.push_back(linesOperation(services));

    Operation get("GET", "/v1/log-level", "getLogLevel", "How much the server logs", "System");
    get.role = Role::Admin;
    get.answers = {{200, "The level", levelSchema()}};
    get.handle = [&services](Call&) { return jsonResponse(levelJson(services.log)); };
    all.push_back(std::move(get));

    Operation put("PUT", "/v1/log-level", "putLogLevel", "Change how much the server logs",
                  "System");
    put.description = "From now on, until the next start, which uses --log-level again.";
    put.role = Role::Admin;
    put.body_kind = Body::Json;
    put.body = levelSchema();
    put.answers = {{200, "The level", levelSchema()}};
    put.handle = [&services](Call& call) {
        const auto level = metrics::kLogLevels.find(call.body.at("level").get<std::string>());
        const metrics::LogLevel before = services.log.level();
        // Logged at every level: the log names whoever silences it. The schema checked the text.
        services.log.audit("log.level", {{"from", metrics::kLogLevels.of(before)},
                                         {"to", metrics::kLogLevels.of(*level)},
                                         {"tenant", call.who.tenant},
                                         {"request", call.request.id()}});
        services.log.setLevel(*level);
        return jsonResponse(levelJson(services.log));
    };
    all.push_back(std::move(put));
    return all;
}

}  // namespace hearth::rest
