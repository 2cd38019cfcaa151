#include "api/kubernetes/WorkspaceObject.h"

#include <cmath>

#include "api/rest/gate/Gate.h"
#include "api/rest/model/Requests.h"
#include "base/Digest.h"
#include "controller/contract/TenantName.h"
#include "controller/spec/PoolSpec.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::kubernetes {
namespace {

/// Fields with secrets or much data: an object is stored unencrypted and sent to every watcher.
constexpr const char* kNotHere[] = {"secrets", "files", "credentials"};

constexpr const char* kClaimed = "Claimed";
constexpr const char* kEnding = "Ending";
constexpr const char* kEnded = "Ended";

/// Returns the reason of the condition Ready; empty if there is none yet.
std::string reasonOf(const Json& status) {
    const Json* ready = conditionOf(status, "Ready");
    return ready == nullptr ? "" : ready->value("reason", "");
}

Json conditionsOf(const Json& object, bool ready, const Refusal& why, const std::string& now) {
    const bool stalled = !ready && why.wrong;
    Json conditions{condition("Ready", ready, why, now),
                    condition("Stalled", stalled,
                              stalled ? why : Refusal{"Accepted", "the spec is valid"}, now)};
    completeConditions(conditions, object, now);
    return conditions;
}

}  // namespace

WorkspaceWish wishOf(const Json& object, std::string_view secret_key) {
    Json body = object.value("spec", Json::object());
    WorkspaceWish wish;
    wish.tenant = "default";
    if (const auto tenant = body.find("tenant"); tenant != body.end() && !tenant->is_null()) {
        if (tenant->is_string()) wish.tenant = tenant->get<std::string>();
        if (!tenant->is_string() || !controller::isTenantName(wish.tenant)) {
            throw Error(ErrorCode::InvalidSpec,
                        "/spec/tenant " + std::string(controller::kTenantNameRule))
                .field("/spec/tenant", controller::kTenantNameRule);
        }
        body.erase("tenant");
    }
    for (const char* field : kNotHere) {
        if (!body.contains(field)) continue;
        throw Error(ErrorCode::InvalidSpec,
                    std::string("/spec/") + field + " cannot be set in an object")
            .hint("set it over REST once the workspace exists");
    }
    static const rest::Schema shape = rest::workspaceRequestSchema();
    body = shape.withoutNulls(std::move(body));
    shape.validate(body, "the spec");
    const std::string uid = pool::kubernetes::valueText(object, "/metadata/uid");
    wish.request = rest::readWorkspaceRequest(body);
    wish.request.labels[kObjectLabel] = uid;
    if (!wish.request.name)
        wish.request.name = pool::kubernetes::valueText(object, "/metadata/name");
    wish.request.idempotency_key = "kubernetes-" + uid;
    wish.request.fingerprint = rest::requestFingerprint(secret_key, "object", uid, body);
    return wish;
}

std::string secretName(const Json& object, std::string_view secret_key) {
    constexpr std::size_t kMostOfName = 200;  // a name may have 253
    constexpr std::size_t kDigits = 10;
    const std::string uid = pool::kubernetes::valueText(object, "/metadata/uid");
    return pool::kubernetes::valueText(object, "/metadata/name").substr(0, kMostOfName) + "-" +
           toHex(hmacSha256(rawBytes(hmacSha256(secret_key, "hearth secret name 1")), uid))
               .substr(0, kDigits);
}

Json secretOf(const Json& object, const std::string& name, const WorkspaceAccessText& text) {
    return {
        {"apiVersion", "v1"},
        {"kind", "Secret"},
        {"metadata",
         {{"name", name},
          {"labels", {{"app.kubernetes.io/managed-by", "hearth"}}},
          {"ownerReferences",
           Json::array({{{"apiVersion", controller::kPoolApiVersion},
                         {"kind", "Workspace"},
                         {"name", pool::kubernetes::valueAt(object, "/metadata/name")},
                         {"uid", pool::kubernetes::valueAt(object, "/metadata/uid")},
                         {"controller", true}}})}}},
        {"type", "Opaque"},
        {"stringData", {{"url", text.url}, {"workspace", text.workspace}, {"token", text.token}}}};
}

Json pendingStatus(const Json& object, const Refusal& why, const std::string& now) {
    return {{"observedGeneration", generationOf(object)},
            {"phase", "Pending"},
            {"conditions", conditionsOf(object, false, why, now)}};
}

Json claimedStatus(const Json& object, const controller::WorkspaceView& view,
                   const std::string& url, const std::string& secret, const std::string& now) {
    const bool open = controller::isOpen(view.phase);
    const Refusal claimed{kClaimed, "its address and token are in the Secret " + secret};
    Json status{{"observedGeneration", generationOf(object)},
                {"phase", controller::kWorkspacePhases.of(view.phase)},
                {"workspace", view.id},
                {"tenant", view.tenant},
                {"pool", view.pool},
                {"sandbox", view.sandbox_id},
                {"url", url},
                {"secret", secret},
                {"claimedAt", view.created_at}};
    // Only the answer to the claim has these fields.
    for (const char* field : {"source", "claimMicroseconds"}) {
        const Json& before = pool::kubernetes::valueAt(object, "/status");
        if (before.is_object() && before.contains(field)) status[field] = before[field];
    }
    if (view.claim) {
        status["source"] = controller::kClaimSources.of(view.claim->source);
        status["claimMicroseconds"] = std::llround(view.claim->total_ms * 1000);
    }
    const Refusal ending{kEnding, "the workspace is being ended"};
    status["conditions"] = conditionsOf(object, open, open ? claimed : ending, now);
    return status;
}

Json endedStatus(const Json& object, const std::string& why, const std::string& now) {
    Json status = object.value("status", Json::object());
    status["observedGeneration"] = generationOf(object);
    status["phase"] = "Gone";
    status["conditions"] = conditionsOf(object, false, {kEnded, why}, now);
    return status;
}

std::vector<Json> workspaceEvents(const Json& object, const Json& before, const Json& now,
                                  const std::string& time) {
    std::vector<Json> events = eventsOf(object, before, now, time);
    const std::string reason = reasonOf(now);
    const Json* stalled = conditionOf(now, "Stalled");
    const bool told = stalled != nullptr && stalled->value("status", "") == "True";
    // The end of the workspace follows soon and has the reason.
    if (told || reason.empty() || reason == reasonOf(before) || reason == kEnding) return events;
    const bool warning = reason != kClaimed && reason != kEnded;
    events.push_back(eventAbout(
        object, warning, {reason, conditionOf(now, "Ready")->value("message", reason)}, time));
    return events;
}

}  // namespace hearth::kubernetes
