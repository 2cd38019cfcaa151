#include "tests/support/kubernetes/FakeApiServer.h"

#include <sstream>
#include <stdexcept>

#include "base/http/Url.h"

namespace hearth::test {
namespace {

std::string metadata(const Json& object, const char* field) {
    return object.contains("metadata") ? textAt(object["metadata"], field) : "";
}

std::string keyOf(const Json& object) {
    const std::string ns = metadata(object, "namespace");
    return ns.empty() ? metadata(object, "name") : ns + "/" + metadata(object, "name");
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);) {
        if (!part.empty()) out.push_back(part);
    }
    return out;
}

std::string fieldOf(const Json& object, const std::string& path) {
    const Json* at = &object;
    for (const std::string& part : split(path, '.')) {
        if (!at->is_object() || !at->contains(part)) return "";
        at = &(*at)[part];
    }
    return at->is_string() ? at->get<std::string>() : "";
}

/// Checks a selector "a=b,c=d", for labels or for fields.
bool fits(const Json& object, const std::string& selector, bool labels) {
    for (const std::string& term : split(selector, ',')) {
        const std::size_t equals = term.find('=');
        const std::string name = term.substr(0, equals);
        const std::string value =
            equals == std::string::npos ? "" : term.substr(term.find_last_of('=') + 1);
        const Json none = Json::object();
        const Json& held =
            labels && object["metadata"].contains("labels") ? object["metadata"]["labels"] : none;
        const std::string is = labels ? textAt(held, name.c_str()) : fieldOf(object, name);
        const bool there = !labels || held.contains(name);
        if (equals == std::string::npos ? !there : !there || is != value) return false;
    }
    return true;
}

FakeApiServer::Answer ok(const Json& body, int status = 200) {
    return {.status = status, .body = dumpJson(body)};
}

}  // namespace

FakeApiServer::FakeApiServer(std::shared_ptr<SSL_CTX> tls)
    : listener_(std::move(tls), [this](ServedConnection& connection) { serve(connection); }) {}

FakeApiServer::~FakeApiServer() {
    shut();
}

void FakeApiServer::shut() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    listener_.shut();
}

void FakeApiServer::addKind(const std::string& collection) {
    const std::lock_guard lock(mutex_);
    objects_[collection];
}

void FakeApiServer::putDocument(const std::string& path, const Json& document) {
    const std::lock_guard lock(mutex_);
    documents_.erase(path);
    if (!document.is_null()) documents_[path] = document;
}

void FakeApiServer::removeKind(const std::string& collection) {
    {
        const std::lock_guard lock(mutex_);
        objects_.erase(collection);
    }
    endWatches(End::Clean);
}

Json FakeApiServer::keep(const std::string& collection, Json object) {
    auto& kind = objects_[collection];
    const std::string key = keyOf(object);
    const auto known = kind.find(key);
    Json& meta = object["metadata"];
    const bool fresh = known == kind.end();
    meta["uid"] = fresh ? "uid-" + std::to_string(++uids_) : metadata(known->second, "uid");
    meta["resourceVersion"] = std::to_string(++version_);
    events_.push_back({version_, collection, fresh ? Json() : known->second, object});
    kind[key] = object;
    changed_.notify_all();
    return object;
}

void FakeApiServer::drop(const std::string& collection, const std::string& key) {
    auto& kind = objects_[collection];
    const auto known = kind.find(key);
    if (known == kind.end()) throw std::logic_error("the fake server has no " + key);
    Json last = known->second;
    last["metadata"]["resourceVersion"] = std::to_string(++version_);
    events_.push_back({version_, collection, last, Json()});
    kind.erase(known);
    changed_.notify_all();
}

Json FakeApiServer::put(const std::string& collection, Json object) {
    const std::lock_guard lock(mutex_);
    return keep(collection, std::move(object));
}

void FakeApiServer::remove(const std::string& collection, const std::string& key) {
    const std::lock_guard lock(mutex_);
    drop(collection, key);
}

std::optional<Json> FakeApiServer::get(const std::string& collection,
                                       const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto kind = objects_.find(collection);
    if (kind == objects_.end()) return std::nullopt;
    const auto found = kind->second.find(key);
    return found == kind->second.end() ? std::nullopt : std::optional<Json>(found->second);
}

std::size_t FakeApiServer::count(const std::string& collection) const {
    const std::lock_guard lock(mutex_);
    const auto kind = objects_.find(collection);
    return kind == objects_.end() ? 0 : kind->second.size();
}

std::string FakeApiServer::version() const {
    const std::lock_guard lock(mutex_);
    return std::to_string(version_);
}

void FakeApiServer::compact() {
    const std::lock_guard lock(mutex_);
    compacted_ = ++version_;
    events_.clear();
}

void FakeApiServer::restart() {
    compact();
    listener_.cutAll();
}

void FakeApiServer::acceptOnly(const std::string& token) {
    const std::lock_guard lock(mutex_);
    token_ = token;
}

FakeApiServer::Answer FakeApiServer::status(int code, const std::string& reason,
                                            const std::string& message) {
    return {.status = code,
            .body = dumpJson({{"kind", "Status"},
                              {"apiVersion", "v1"},
                              {"status", "Failure"},
                              {"message", message},
                              {"reason", reason},
                              {"code", code}})};
}

FakeApiServer::Answer FakeApiServer::tooLarge() {
    Answer answer = status(504, "Timeout", "Too large resource version: 900, current: 100");
    Json body = parseJson(answer.body);
    body["details"] = {{"causes", {{{"reason", "ResourceVersionTooLarge"}}}},
                       {"retryAfterSeconds", 1}};
    answer.body = dumpJson(body);
    answer.headers = {{"Retry-After", "1"}};
    return answer;
}

void FakeApiServer::answerNext(const std::string& verb, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[verb].push_back(std::move(answer));
}

std::vector<SeenRequest> FakeApiServer::seen() const {
    const std::lock_guard lock(mutex_);
    std::vector<SeenRequest> out;
    for (const auto& [verb, request] : seen_) out.push_back(request);
    return out;
}

std::vector<SeenRequest> FakeApiServer::seen(const std::string& verb) const {
    const std::lock_guard lock(mutex_);
    std::vector<SeenRequest> out;
    for (const auto& [each, request] : seen_) {
        if (each == verb) out.push_back(request);
    }
    return out;
}

std::optional<FakeApiServer::Route> FakeApiServer::route(const SeenRequest& request) {
    std::vector<std::string> parts = split(request.path, '/');
    const std::size_t head = !parts.empty() && parts[0] == "api" ? 2 : 3;
    if (parts.size() <= head || (parts[0] != "api" && parts[0] != "apis")) return std::nullopt;
    Route route;
    for (std::size_t i = 0; i < head; ++i) route.collection += "/" + parts[i];
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(head));
    if (parts[0] == "namespaces" && parts.size() > 2) {
        route.ns = parts[1];
        parts.erase(parts.begin(), parts.begin() + 2);
    }
    route.collection += "/" + parts[0];
    if (parts.size() > 1) route.name = parts[1];
    if (parts.size() > 2) route.subresource = parts[2];
    const std::string& method = request.method;
    if (method == "GET") {
        route.verb = !route.name.empty()                ? "get"
                     : request.param("watch") == "true" ? "watch"
                                                        : "list";
    } else if (method == "POST") {
        route.verb = "create";
    } else if (method == "PUT") {
        route.verb = "update";
    } else {
        route.verb = method == "PATCH" ? "patch" : "delete";
    }
    return route;
}

void FakeApiServer::serve(ServedConnection& connection) {
    while (const std::optional<SeenRequest> request = connection.request()) {
        if (!answer(connection, *request)) return;
    }
}

bool FakeApiServer::answer(ServedConnection& connection, const SeenRequest& request) {
    const std::optional<Route> where = route(request);
    std::optional<Answer> answer;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return false;
        const std::string verb = where ? where->verb : "get";
        seen_.emplace_back(verb, request);
        std::deque<Answer>& planned = answers_[verb];
        if (token_ && request.header("authorization") != "Bearer " + *token_) {
            answer = status(401, "Unauthorized", "Unauthorized");
        } else if (!planned.empty()) {
            answer = planned.front();
            planned.pop_front();
        } else if (request.target == "/version") {
            answer = {200, R"({"major":"1","minor":"20","gitVersion":"v1.20.2"})"};
        } else if (documents_.contains(request.path)) {
            answer = ok(documents_[request.path]);
        } else if (!where || !objects_.contains(where->collection)) {
            answer = status(404, "NotFound", "the server could not find the requested resource");
        } else if (verb == "watch") {
            answer = refuseWatch(request);
        } else {
            answer = handle(request, *where);
        }
    }
    if (!answer) {
        watch(connection, request, *where);
        return false;
    }
    std::string head = "HTTP/1.1 " + std::to_string(answer->status) +
                       " Words\r\nContent-Type: application/json\r\nContent-Length: " +
                       std::to_string(answer->body.size()) + "\r\n";
    for (const auto& [name, value] : answer->headers) {
        head.append(name).append(": ").append(value).append("\r\n");
    }
    return connection.send(head + "\r\n" + answer->body);
}

FakeApiServer::Answer FakeApiServer::handle(const SeenRequest& request, const Route& route) {
    if (route.verb == "list") return list(request, route);
    if (route.verb == "create") return create(request, route);
    const auto& kind = objects_[route.collection];
    const auto known = kind.find(route.key());
    if (known == kind.end()) return status(404, "NotFound", route.name + " not found");
    if (route.verb == "get") return ok(known->second);
    if (route.verb == "update") return update(request, route);
    return route.verb == "patch" ? patch(request, route) : erase(request, route);
}

bool FakeApiServer::selected(const Json& object, const SeenRequest& request,
                             const std::string& ns) {
    return !object.is_null() && (ns.empty() || metadata(object, "namespace") == ns) &&
           fits(object, request.param("labelSelector"), true) &&
           fits(object, request.param("fieldSelector"), false);
}

FakeApiServer::Answer FakeApiServer::list(const SeenRequest& request, const Route& route) const {
    const std::string wanted = request.param("resourceVersion");
    if (!wanted.empty() && std::stoull(wanted) > version_) return tooLarge();
    std::string after;
    std::uint64_t version = version_;
    if (const std::string token = request.param("continue"); !token.empty()) {
        // "VERSION;KEY": only an encoded ';' comes through.
        version = std::stoull(token);
        after = token.substr(token.find(';') + 1);
        if (version < compacted_) {
            Answer gone = status(410, "Expired", "The provided continue parameter is too old");
            Json body = parseJson(gone.body);
            body["metadata"] = {{"continue", "another"}};
            gone.body = dumpJson(body);
            return gone;
        }
    }
    const std::string limit = request.param("limit");
    const std::size_t most = limit.empty() ? SIZE_MAX : std::stoul(limit);
    Json items = Json::array();
    Json meta = {{"resourceVersion", std::to_string(version)}};
    std::string last;
    for (const auto& [key, object] : objects_.at(route.collection)) {
        if ((!after.empty() && key <= after) || !selected(object, request, route.ns)) continue;
        if (items.size() == most) {
            meta["continue"] = std::to_string(version) + ";" + last;
            break;
        }
        items.push_back(object);
        last = key;
    }
    return ok({{"kind", "List"}, {"apiVersion", "v1"}, {"metadata", meta}, {"items", items}});
}

FakeApiServer::Answer FakeApiServer::create(const SeenRequest& request, const Route& route) {
    Json object = parseJson(request.body);
    Json& meta = object["metadata"];
    if (!route.ns.empty()) meta["namespace"] = route.ns;
    if (metadata(object, "name").empty() && !metadata(object, "generateName").empty()) {
        meta["name"] = metadata(object, "generateName") + std::to_string(uids_ + 1);
    }
    if (metadata(object, "name").empty()) return status(422, "Invalid", "name is required");
    if (objects_[route.collection].contains(keyOf(object))) {
        return status(409, "AlreadyExists", metadata(object, "name") + " already exists");
    }
    return ok(keep(route.collection, std::move(object)), 201);
}

FakeApiServer::Answer FakeApiServer::store(const Route& route, const std::string& key,
                                           const Json& before, Json after) {
    const std::string version = metadata(after, "resourceVersion");
    if (!version.empty() && version != metadata(before, "resourceVersion")) {
        return status(409, "Conflict", "the object has been modified");
    }
    const std::string uid = metadata(after, "uid");
    if (!uid.empty() && uid != metadata(before, "uid")) {
        return status(409, "Conflict", "Precondition failed: UID");
    }
    if (route.subresource == "status") {
        Json merged = before;
        if (after.contains("status")) merged["status"] = after["status"];
        after = std::move(merged);
    } else if (before.contains("status")) {
        after["status"] = before["status"];  // only the subresource can write it
    }
    const bool ends =
        before["metadata"].contains("deletionTimestamp") &&
        (!after["metadata"].contains("finalizers") || after["metadata"]["finalizers"].empty());
    const Json stored = keep(route.collection, std::move(after));
    if (ends) drop(route.collection, key);
    return ok(stored);
}

FakeApiServer::Answer FakeApiServer::update(const SeenRequest& request, const Route& route) {
    Json object = parseJson(request.body);
    if (!route.ns.empty()) object["metadata"]["namespace"] = route.ns;
    return store(route, route.key(), objects_[route.collection][route.key()], std::move(object));
}

FakeApiServer::Answer FakeApiServer::patch(const SeenRequest& request, const Route& route) {
    const Json before = objects_[route.collection][route.key()];
    const std::string type = request.header("content-type");
    Json after = before;
    if (type == "application/merge-patch+json") {
        after.merge_patch(parseJson(request.body));
    } else if (type == "application/json-patch+json") {
        try {
            after = before.patch(parseJson(request.body));
        } catch (const Json::exception& e) {
            return status(422, "Invalid", e.what());
        }
    } else {
        return status(415, "UnsupportedMediaType", type);
    }
    return store(route, route.key(), before, std::move(after));
}

FakeApiServer::Answer FakeApiServer::erase(const SeenRequest& request, const Route& route) {
    Json object = objects_[route.collection][route.key()];
    const Json options = request.body.empty() ? Json::object() : parseJson(request.body);
    if (options.contains("preconditions")) {
        for (const char* field : {"uid", "resourceVersion"}) {
            const std::string wanted = textAt(options["preconditions"], field);
            if (!wanted.empty() && wanted != metadata(object, field)) {
                return status(409, "Conflict", std::string("Precondition failed: ") + field);
            }
        }
    }
    const Json& meta = object["metadata"];
    if (meta.contains("finalizers") && !meta["finalizers"].empty()) {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
        return ok(keep(route.collection, std::move(object)));
    }
    drop(route.collection, route.key());
    return ok({{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

}  // namespace hearth::test
