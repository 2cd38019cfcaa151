#include <algorithm>
#include <charconv>

#include "api/rest/model/Answers.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"
#include "api/rest/streams/EventStream.h"
#include "api/rest/streams/Sse.h"

namespace hearth::rest {
namespace {

using controller::Role;
using controller::Services;

std::uint64_t decimal(const std::string& text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;  // the schema has checked it
}

Operation eventsOperation(const Services& services) {
    Operation op("GET", "/v1/events", "listEvents", "List or follow events", "System");
    op.description =
        "Lists, oldest first; with `Accept: text/event-stream` follows: each event is named by its "
        "type, its data is an Event, and Last-Event-ID continues after the last one received.";
    op.parameters = {
        queryParameter("since", Schema::string(kDecimal), "Only events with a greater id"),
        queryParameter("cursor", Schema::string(kDecimal), "The `nextCursor` of the page before"),
        queryParameter("limit", Schema::integer(1, 1000).fallback(100), "Items of one page"),
        queryParameter("type", Schema::string().sizes(1, 100), "Only events of this type"),
        queryParameter("resource", Schema::string().sizes(1, 100), "Only events of this resource"),
        headerParameter("Last-Event-ID", Schema::string(kDecimal), "The last id received")};
    op.answers = {{200, "A page of events", listSchema<controller::Event>("EventList")},
                  {200, "The stream", {}, "text/event-stream", systemEvents()}};
    op.handle = [&services](Call& call) {
        controller::EventQuery query;
        query.type = call.queryOr<std::string>("type", "");
        query.resource = call.queryOr<std::string>("resource", "");
        query.limit = call.queryOr<std::size_t>("limit", 100);
        if (wantsEventStream(call.request)) {
            query.since = lastEventId(call.request).value_or(0);
            query.limit = std::min<std::size_t>(query.limit, 100);  // queued at a time
            api::Response response = sseResponse(
                [&services, who = call.who, query](std::shared_ptr<api::Stream> stream) {
                    EventStream::start(services.events, who, query, std::move(stream));
                });
            response.news = true;
            return response;
        }
        const auto cursor = call.queryOr<std::string>("cursor", "");
        query.since = decimal(cursor.empty() ? call.queryOr<std::string>("since", "0") : cursor);
        const std::vector<controller::Event> events = services.events.list(call.who, query);
        const bool more = events.size() >= query.limit;
        return jsonResponse(listJson(jsonOf(events), more ? std::to_string(events.back().id) : ""));
    };
    return op;
}

Operations tokenOperations(const Services& services) {
    Operations all;
    Operation list("GET", "/v1/tokens", "listTokens", "All tokens", "Tokens");
    list.role = Role::Admin;
    list.parameters = wholeListParameters();
    list.answers = {
        {200, "Without the tokens themselves", listSchema<controller::TokenView>("TokenList")}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(
            call, services.tokens.list(call.who),
            [](const controller::TokenView& view) { return view.created_at + " " + view.id; });
        return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
    };
    all.push_back(std::move(list));

    Operation create("POST", "/v1/tokens", "createToken", "Make a token", "Tokens");
    create.description =
        "From the first token on, loopback callers need one too, permanently; it must be an "
        "admin's.";
    create.role = Role::Admin;
    create.idempotent = create.replayed = true;
    create.parameters = {idempotencyKeyParameter()};
    create.body_kind = Body::Json;
    create.body = Schema::object()
                      .required("name", Schema::string(kDisplayName))
                      .optional("tenant", Schema::string(kTenant).fallback("default"))
                      .optional("role", Schema::oneOf(controller::kRoles.all()).fallback("user"))
                      .optional("expiresInSeconds", Schema::integer(1, 10LL * 366 * 24 * 3600))
                      .example({{"name", "ci"}, {"tenant", "default"}, {"role", "user"}})
                      .named("TokenRequest");
    create.answers = {{201, "The token, shown this once", newTokenSchema()}};
    create.problems = {ErrorCode::Conflict, ErrorCode::IdempotencyInFlight,
                       ErrorCode::IdempotencyMismatch};
    create.handle = [&services](Call& call) {
        std::optional<std::int64_t> ttl;
        if (const auto at = call.body.find("expiresInSeconds"); at != call.body.end()) {
            ttl = at->get<std::int64_t>();
        }
        const Role role = controller::kRoles.find(call.body.value("role", "user")).value();
        if (role != Role::Admin && !services.tokens.configured()) {
            throw Error(ErrorCode::Conflict, "the first token must be an admin's")
                .hint("create an admin first: hearth token create --name NAME --role admin");
        }
        const auto [view, token] =
            services.tokens.create(call.who, call.body.at("name").get<std::string>(),
                                   call.body.value("tenant", "default"), role, ttl);
        Json document = jsonOf(view);
        document["token"] = token;
        api::Response response = jsonResponse(document, 201);
        response.headers.add("Cache-Control", "no-store");
        response.headers.add("Location", "/v1/tokens/" + view.id);
        return response;
    };
    all.push_back(std::move(create));

    Operation remove("DELETE", "/v1/tokens/{token}", "deleteToken", "Revoke a token", "Tokens");
    remove.description =
        "The revocation is on disk when it is answered. The last token of an admin stays: 409.";
    remove.role = Role::Admin;
    remove.answers = {{204, "Revoked", {}, {}}};
    remove.problems = {ErrorCode::NotFound, ErrorCode::Conflict};
    remove.handle = [&services](Call& call) {
        services.tokens.remove(call.who, call.param("token"));
        return emptyResponse();
    };
    all.push_back(std::move(remove));
    return all;
}

}  // namespace

Operations systemOperations(const Services& services) {
    Operations all;
    all.push_back(eventsOperation(services));

    Operation capabilities("GET", "/v1/capabilities", "getCapabilities", "What this server can do",
                           "System");
    capabilities.description = "Runtimes found, the isolation really in force, images, languages.";
    capabilities.answers = {{200, "The capabilities", capabilitiesSchema()}};
    capabilities.handle = [&services](Call&) { return jsonResponse(services.capabilities()); };
    all.push_back(std::move(capabilities));

    for (Operation& op : tokenOperations(services)) all.push_back(std::move(op));
    return all;
}

}  // namespace hearth::rest
