#include "api/rest/gate/Gate.h"

#include <algorithm>
#include <charconv>

#include "api/auth/Audited.h"
#include "api/http/RequestFacts.h"
#include "api/rest/model/Answers.h"
#include "base/http/Url.h"
#include "controller/contract/Fingerprint.h"

namespace hearth::rest {
namespace {

Error invalid(const std::string& message, const std::string& hint) {
    return std::move(Error(ErrorCode::InvalidArgument, message).hint(hint));
}

/// The typed value of a query parameter's text; if the text does not parse, the text itself, so
/// that the schema reports the fault.
Json typed(const Schema& schema, const std::string& text) {
    if (schema.kind() == Schema::Kind::Boolean) {
        if (text == "true") return true;
        if (text == "false") return false;
    }
    if (schema.kind() == Schema::Kind::Integer) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) return value;
    }
    return text;
}

const Parameter* findQuery(const Operation& operation, const std::string& name) {
    for (const Parameter& parameter : operation.parameters) {
        if (parameter.in == Parameter::In::Query && parameter.name == name) return &parameter;
    }
    return nullptr;
}

std::string queryNames(const Operation& operation) {
    std::string names;
    for (const Parameter& parameter : operation.parameters) {
        if (parameter.in != Parameter::In::Query) continue;
        if (!names.empty()) names.append(", ");
        names.append(parameter.name);
    }
    return names.empty() ? "none" : names;
}

Json parseQueryOf(const Operation& operation, const api::Request& request) {
    Json query = Json::object();
    Faults faults;
    for (const auto& [name, text] : request.queryAll()) {
        const std::string pointer = "?" + toUtf8(std::string_view(name).substr(0, 64));
        const Parameter* parameter = findQuery(operation, name);
        if (parameter == nullptr) {
            faults.invalid.push_back(
                {pointer, "is not a known query parameter; known are: " + queryNames(operation)});
        } else if (!isUtf8(text) && name != "path") {  // a file's name is bytes
            faults.invalid.push_back({pointer, "must be valid UTF-8"});
        } else if (parameter->schema.kind() == Schema::Kind::Array) {
            query[name].push_back(typed(*parameter->schema.items(), text));
        } else if (query.contains(name)) {
            faults.invalid.push_back({pointer, "is given twice"});
        } else {
            query[name] = typed(parameter->schema, text);
        }
        if (faults.invalid.size() > 20) break;
    }
    for (const auto& [name, value] : query.items()) {
        findQuery(operation, name)->schema.check(value, "?" + name, faults);
    }
    throwFaults(faults, "the query");
    return query;
}

void checkContentType(const Operation& operation, const api::Request& request) {
    const std::string media = api::mediaTypeOf(request);
    const bool merge = operation.method == "PATCH" && media == "application/merge-patch+json";
    if (media != "application/json" && !merge) {
        throw invalid("a JSON body needs Content-Type: application/json",
                      "Send the header \"Content-Type: application/json\"");
    }
    const Poco::Net::MediaType type(request.getContentType());
    if (type.hasParameter("charset") && !equalsIgnoreCase(type.getParameter("charset"), "utf-8")) {
        throw invalid("a JSON body must be UTF-8", "Send the body in UTF-8");
    }
}

Json readJson(const Operation& operation, api::Request& request) {
    const std::optional<std::uint64_t> length = request.contentLength();
    if (length && *length > kLargestJson) {
        throw Error(ErrorCode::PayloadTooLarge, "a JSON body may have 4 MiB at most")
            .hint("Send large content as a file: PUT /v1/workspaces/{workspace}/files/{path}");
    }
    const std::string text = request.readBody(kLargestJson);
    if (text.empty()) {
        if (operation.body_kind == Body::OptionalJson) return Json::object();
        throw invalid("a JSON body is needed", "The shape of the body is in /openapi.json");
    }
    checkContentType(operation, request);
    Json body = operation.body.withoutNulls(parseJson(text));
    operation.body.validate(body, "the body");
    return body;
}

std::string idempotencyKey(const api::Request& request) {
    const std::optional<std::string> key = request.header("Idempotency-Key");
    if (!key) return {};
    const bool visible =
        std::all_of(key->begin(), key->end(), [](char c) { return c > ' ' && c < '\x7F'; });
    if (key->empty() || key->size() > 255 || !visible) {
        throw invalid("the Idempotency-Key is not valid",
                      "Send 1 to 255 visible ASCII characters, for example a UUID");
    }
    return *key;
}

}  // namespace

std::shared_ptr<metrics::AuditEntry> Gate::audit(const Operation& operation, api::Request& request,
                                                 const api::RouteParams& path) const {
    metrics::AuditEntry draft;
    draft.surface = "rest";
    draft.operation = operation.id;
    draft.route = operation.pattern;
    // A link's token gives the file, so it is not logged.
    const bool secret = static_cast<bool>(operation.speaks_for);
    if (!path.values.empty() && !secret) draft.resource = path.values.front().second;
    const bool reads = operation.method == "GET" || operation.method == "HEAD";
    return auth::audited(request, services_.audit, std::move(draft), reads);
}

std::string requestFingerprint(std::string_view secret_key, const std::string& method,
                               const std::string& path, const Json& body) {
    const nlohmann::json sorted = nlohmann::json::parse(dumpJson(body));
    return controller::fingerprintOf(secret_key, method + " " + path + "\n" + sorted.dump());
}

api::Response Gate::pass(const Operation& operation, api::Request& request,
                         const api::RouteParams& path) {
    const std::shared_ptr<metrics::AuditEntry> entry = audit(operation, request, path);
    controller::Principal who;
    std::string share_of;
    if (!operation.open) {
        who = authenticator_.authenticateAny(request);
        share_of = who.tenant;
    } else if (operation.speaks_for) {
        who = operation.speaks_for(path);
        // Anybody may hold a link, so links have their own shares. No tenant's name has a '/'.
        share_of = who.tenant + "/links";
        request.actsFor(share_of, who.token_id, {});
    } else {
        return handle(operation, request, path, {});
    }
    auth::sayWho(entry, who);
    auth::require(limits_, request, share_of);
    if (!operation.open && !who.atLeast(operation.role)) {
        throw Error(ErrorCode::Forbidden, std::string("this needs the role ") +
                                              controller::kRoles.of(operation.role) + ", not " +
                                              controller::kRoles.of(who.role))
            .hint("Use a token with that role");
    }
    const bool work = operation.open || operation.role == controller::Role::User;
    return shares_.answer(
        request, share_of,
        [this, &operation, &request, path, who] { return handle(operation, request, path, who); },
        work ? auth::WorkerShares::Kind::Work : auth::WorkerShares::Kind::Operators);
}

/// Refuses every operation that does not concern that workspace, so also a new operation.
void Gate::requireWithin(const api::RouteParams& path, const controller::Principal& who) const {
    for (const auto& [name, value] : path.values) {
        std::string workspace;
        if (name == "workspace") workspace = value;
        if (name == "execution") {
            workspace = services_.executions.find(who, value)->viewUpTo(0).workspace_id;
        }
        if (name == "context") workspace = services_.contexts.get(who, value).workspace_id;
        if (workspace != who.workspace) continue;
        services_.workspaces.get(who, workspace);  // Gone: the token ended with the workspace
        return;
    }
    throw Error(ErrorCode::Forbidden, "this token is for one workspace only")
        .hint("Use it below /v1/workspaces/" + who.workspace);
}

api::Response Gate::handle(const Operation& operation, api::Request& request,
                           const api::RouteParams& path, const controller::Principal& who) {
    if (!who.workspace.empty()) requireWithin(path, who);
    Call call{request, path, who, Json::object(), Json(), {}, {}};
    if (!operation.hidden) {
        call.query = parseQueryOf(operation, request);
        if (operation.idempotent) call.idempotency_key = idempotencyKey(request);
        if (operation.body_kind == Body::Json || operation.body_kind == Body::OptionalJson) {
            call.body = readJson(operation, request);
        }
        if (!call.idempotency_key.empty()) {
            call.fingerprint = requestFingerprint(services_.secret_key, request.method(),
                                                  request.path(), call.body);
        }
    }
    const auto handled = [&operation, &call] { return operation.handle(call); };
    return operation.replayed && !call.idempotency_key.empty()
               ? replays_.answer(call.who.tenant,
                                 operation.id + " " + request.path() + " " + call.idempotency_key,
                                 call.fingerprint, handled)
               : handled();
}

}  // namespace hearth::rest
