#include "pool/runtime/kubernetes/client/KubernetesClient.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/ScopeExit.h"

namespace hearth::pool::kubernetes {
namespace {

using std::chrono::milliseconds;

constexpr const char* kJsonType = "application/json";
/// How often a caller that waits for a connection checks its flag `stop`.
constexpr milliseconds kLookAtStop{200};

std::string nameOf(const Json& object) {
    const auto metadata = object.find("metadata");
    return metadata != object.end() && metadata->is_object() ? textAt(*metadata, "name") : "";
}

KubeError unnamed() {
    return {.kind = KubeErrorKind::BadRequest, .message = "the object has no metadata.name"};
}

}  // namespace

struct KubernetesClient::Connection {
    http::HttpClient client;
    std::uint64_t tls_version;
};

struct KubernetesClient::Call {
    std::string method;
    std::string target;
    std::string body = {};
    std::string content_type = kJsonType;
};

JsonLimits kubeJsonLimits() {
    return {.bytes = 512U << 20U,
            .depth = 128,
            .values = 50'000'000,
            .members = 1'000'000,
            .lenient = true};
}

Json referenceTo(const Json& object) {
    return {{"apiVersion", object.value("apiVersion", "")},
            {"kind", object.value("kind", "")},
            {"name", nameOf(object)},
            {"uid", object.value(Json::json_pointer("/metadata/uid"), "")},
            {"controller", false},
            {"blockOwnerDeletion", false}};
}

KubeResult<Json> ownerReference(KubernetesClient& client, const OwnerName& owner) {
    KubeResult<Json> object = client.get(owner.resource, owner.name);
    if (!object) return object;
    return referenceTo(object.value());
}

KubernetesClient::KubernetesClient(ClusterAccess& access, unsigned connections)
    : access_(access), most_(std::max(connections, 1U)) {}

KubernetesClient::~KubernetesClient() = default;

KubeResult<Json> KubernetesClient::get(const KubeResource& resource, const std::string& name,
                                       const CallLimits& limits) {
    return run({"GET", resource.path(name)}, limits);
}

KubeResult<Json> KubernetesClient::getPath(const std::string& target, const CallLimits& limits) {
    return run({"GET", target}, limits);
}

KubeResult<ObjectPage> KubernetesClient::list(const KubeResource& resource, const ListQuery& query,
                                              const CallLimits& limits) {
    KubeQuery text;
    text.add("labelSelector", query.label_selector)
        .add("fieldSelector", query.field_selector)
        .add("limit", query.limit == 0 ? "" : std::to_string(query.limit))
        .add("continue", query.continue_from)
        .add("resourceVersion", query.resource_version);
    KubeResult<Json> answer = run({"GET", resource.path() + text.text()}, limits);
    if (!answer) return answer.error();
    Json list = std::move(answer).value();
    const auto metadata = list.find("metadata");
    const auto items = list.find("items");
    if (metadata == list.end() || !metadata->is_object())
        return malformed("a list without metadata");
    ObjectPage page{.items = {},
                    .resource_version = textAt(*metadata, "resourceVersion"),
                    .next = textAt(*metadata, "continue")};
    if (page.resource_version.empty()) return malformed("a list without a resourceVersion");
    if (items == list.end() || items->is_null()) return page;  // Go writes an empty list as null
    if (!items->is_array()) return malformed("a list whose items are none");
    page.items.reserve(items->size());
    for (Json& item : *items) {
        if (!item.is_object() || nameOf(item).empty()) return malformed("an item without a name");
        page.items.push_back(std::move(item));
    }
    return page;
}

KubeResult<Json> KubernetesClient::create(const KubeResource& resource, const Json& object,
                                          const CallLimits& limits) {
    return run({"POST", resource.path(), dumpJson(object)}, limits);
}

KubeResult<Json> KubernetesClient::tryCreate(const KubeResource& resource, const Json& object,
                                             const CallLimits& limits) {
    return run({"POST", resource.path() + "?dryRun=All", dumpJson(object)}, limits);
}

KubeResult<Json> KubernetesClient::createBelow(const KubeResource& resource,
                                               const std::string& name,
                                               const std::string& subresource, const Json& object,
                                               const CallLimits& limits) {
    return run({"POST", resource.path(name, subresource), dumpJson(object)}, limits);
}

KubeResult<Json> KubernetesClient::replace(const KubeResource& resource, const Json& object,
                                           const CallLimits& limits) {
    return put(resource, object, {}, limits);
}

KubeResult<Json> KubernetesClient::replaceStatus(const KubeResource& resource, const Json& object,
                                                 const CallLimits& limits) {
    return put(resource, object, "status", limits);
}

KubeResult<Json> KubernetesClient::put(const KubeResource& resource, const Json& object,
                                       const std::string& subresource, const CallLimits& limits) {
    const std::string name = nameOf(object);
    if (name.empty()) return unnamed();
    return run({"PUT", resource.path(name, subresource), dumpJson(object)}, limits);
}

KubeResult<Json> KubernetesClient::patch(const KubeResource& resource, const std::string& name,
                                         PatchKind kind, const Json& patch,
                                         const std::string& subresource, const CallLimits& limits) {
    return run(
        {"PATCH", resource.path(name, subresource), dumpJson(patch),
         kind == PatchKind::Merge ? "application/merge-patch+json" : "application/json-patch+json"},
        limits);
}

KubeResult<Json> KubernetesClient::remove(const KubeResource& resource, const std::string& name,
                                          const DeleteOptions& options, const CallLimits& limits) {
    if (name.empty()) return unnamed();  // an empty name would mean all objects
    Json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
    if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
    if (!options.resource_version.empty()) {
        body["preconditions"]["resourceVersion"] = options.resource_version;
    }
    if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
    if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
    return run({"DELETE", resource.path(name), dumpJson(body)}, limits);
}

KubeResult<Json> KubernetesClient::run(const Call& call, const CallLimits& limits) {
    const TimePoint until = SystemClock().now() + limits.timeout;
    try {
        ClusterCredentials credentials = access_.credentials();
        http::ClientResponse response = send(call, credentials, until, limits);
        if (response.status == 401 && access_.refused(credentials)) {
            credentials = access_.credentials();
            response = send(call, credentials, until, limits);
        }
        if (response.status >= 400) return errorOf(response);
        if (response.status >= 300) return malformed("the API server redirects elsewhere");
        Json answer = parseJson(response.body, kubeJsonLimits());
        if (!answer.is_object()) return malformed("the answer is no object");
        return answer;
    } catch (const http::ExchangeError& e) {
        return errorOf(e);
    } catch (const Error& e) {  // no JSON, or a token that is invalid in a header
        return malformed(e.what());
    } catch (const std::system_error& e) {  // no descriptor is left
        return noSocket(e);
    }
}

http::ClientResponse KubernetesClient::send(const Call& call, const ClusterCredentials& credentials,
                                            TimePoint until, const CallLimits& limits) {
    http::ClientRequest request;
    request.method = call.method;
    request.target = call.target;
    request.body = call.body;
    request.timeout = limits.timeout;
    request.until = until;
    request.stop = limits.stop;
    if (!call.body.empty()) request.headers.emplace_back("Content-Type", call.content_type);
    if (!credentials.authorization.empty()) {
        request.headers.emplace_back("Authorization", credentials.authorization);
    }
    std::unique_ptr<Connection> connection = borrow(credentials, until, limits);
    const ScopeExit back([&] { giveBack(std::move(connection)); });
    return connection->client.request(request);
}

std::unique_ptr<KubernetesClient::Connection> KubernetesClient::borrow(
    const ClusterCredentials& credentials, TimePoint until, const CallLimits& limits) {
    using http::ExchangeError;
    const SystemClock clock;
    std::unique_ptr<Connection> connection;
    {
        const MutexLock lock(mutex_);
        while (lent_ >= most_) {
            if (limits.stop != nullptr && *limits.stop) {
                throw ExchangeError(ExchangeError::Kind::Stopped, "the caller gave up");
            }
            if (clock.now() >= until) {
                // Reported as a failed connect, because nothing was sent.
                throw ExchangeError(ExchangeError::Kind::Connect,
                                    "all connections to the API server are busy");
            }
            returned_.waitFor(mutex_, kLookAtStop);
        }
        ++lent_;
        if (!idle_.empty()) {
            connection = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (connection && connection->tls_version == credentials.tls_version) return connection;
    try {
        return std::make_unique<Connection>(
            Connection{http::HttpClient(access_.config().url, access_.clientOptions(credentials)),
                       credentials.tls_version});
    } catch (...) {
        giveBack(nullptr);
        throw;
    }
}

void KubernetesClient::giveBack(std::unique_ptr<Connection> connection) {
    const MutexLock lock(mutex_);
    --lent_;
    if (connection) idle_.push_back(std::move(connection));
    returned_.notifyOne();
}

}  // namespace hearth::pool::kubernetes
