#include <charconv>

#include "api/rest/model/Answers.h"
#include "api/rest/model/PoolSpecShape.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"
#include "base/http/ByteRange.h"

namespace hearth::rest {
namespace {

using controller::PoolView;
using controller::Role;
using controller::SandboxView;
using controller::Services;

constexpr std::size_t kLongestWord = 253;

Schema manifestSchema() {
    Schema metadata = Schema::object();
    metadata.optional("name", Schema::string(kPoolName)).open();
    Schema spec = Schema::object();
    spec.open()
        .describe(
            "The spec of the manifest: template, warm, onEmpty, lifecycle, limits. Faults in it "
            "are INVALID_SPEC with a pointer for each")
        .example({{"template", {{"image", "python"}}}, {"warm", {{"min", 2}, {"max", 20}}}})
        .shownAs(poolSpecSchema());
    Schema status = Schema::object();
    status.open().describe("Ignored: a pool may be sent back as it was read");
    return Schema::object()
        .required("apiVersion",
                  Schema::string().sizes(0, kLongestWord).example("hearth.dev/v1alpha1"))
        .required("kind", Schema::string().sizes(0, kLongestWord).example("SandboxPool"))
        .required("metadata", metadata)
        .required("spec", spec)
        .optional("status", status)
        .example(
            {{"apiVersion", "hearth.dev/v1alpha1"},
             {"kind", "SandboxPool"},
             {"metadata", {{"name", "python"}}},
             {"spec", {{"template", {{"image", "python"}}}, {"warm", {{"min", 2}, {"max", 20}}}}}})
        .named("PoolManifest");
}

Schema mergeSchema() {
    Schema merge = Schema::object();
    Schema part = Schema::object();
    part.open();
    return merge.optional("apiVersion", Schema::string().sizes(0, kLongestWord))
        .optional("kind", Schema::string().sizes(0, kLongestWord))
        .optional("metadata", part)
        .optional("spec", part)
        .optional("status", part)
        .describe("An RFC 7396 merge patch: null removes, objects are merged")
        .example({{"spec", {{"warm", {{"min", 4}}}}}})
        .named("PoolPatch");
}

/// Removes the fields that the server itself writes, so that a client may send back a pool as it
/// read it. A resourceVersion counts as If-Match if that header is absent.
std::optional<std::int64_t> takeServerFields(Json& document, const api::Request& request) {
    std::optional<std::int64_t> version = ifMatch(request);
    document.erase("status");
    const auto metadata = document.find("metadata");
    if (metadata == document.end()) return version;
    if (const auto at = metadata->find("resourceVersion"); at != metadata->end()) {
        std::int64_t value = 0;
        const std::string text = at->is_string() ? at->get<std::string>() : at->dump();
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
            throw Error(ErrorCode::InvalidArgument, "the resourceVersion is not a number")
                .field("/metadata/resourceVersion", "must be as it was read")
                .hint("Leave it out, or send it as the last GET gave it");
        }
        if (!version && !request.header("If-Match")) version = value;
    }
    for (const char* name : {"resourceVersion", "generation", "createdAt", "deleting"}) {
        metadata->erase(name);
    }
    return version;
}

api::Response poolResponse(const PoolView& view, int status = 200) {
    api::Response response = jsonResponse(jsonOf(view), status);
    response.headers.add("ETag", "\"" + std::to_string(view.pool->resource_version) + "\"");
    if (status == 201) response.headers.add("Location", "/v1/pools/" + view.pool->name);
    return response;
}

api::Response listSandboxes(const Services& services, const Call& call,
                            const std::optional<std::string>& pool) {
    const auto page =
        pageOf(call, services.pools.sandboxes(call.who, pool),
               [](const SandboxView& view) { return view.created_at + " " + view.id; });
    return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
}

Parameter ifMatchParameter() {
    return headerParameter("If-Match", "The ETag that the pool must still have, else 412");
}

Operations sandboxOperations(const Services& services) {
    Operations all;
    const Schema list = listSchema<SandboxView>("SandboxList");

    Operation of_pool("GET", "/v1/pools/{pool}/sandboxes", "listPoolSandboxes",
                      "The sandboxes of one pool", "Pools");
    of_pool.role = Role::Operator;
    of_pool.parameters = wholeListParameters();
    of_pool.answers = {{200, "Every sandbox of the pool", list, {}}};
    of_pool.problems = {ErrorCode::NotFound};
    of_pool.handle = [&services](Call& call) {
        return listSandboxes(services, call, call.param("pool"));
    };
    all.push_back(std::move(of_pool));

    Operation every("GET", "/v1/sandboxes", "listSandboxes", "All sandboxes", "Pools");
    every.tag = "Sandboxes";
    every.role = Role::Operator;
    every.parameters = wholeListParameters();
    every.parameters.push_back(
        queryParameter("pool", Schema::string(kPoolName), "Only those of this pool"));
    every.answers = {{200, "Every sandbox", list, {}}};
    every.problems = {ErrorCode::NotFound};
    every.handle = [&services](Call& call) {
        std::optional<std::string> pool;
        if (call.query.contains("pool")) pool = call.query.at("pool").get<std::string>();
        return listSandboxes(services, call, pool);
    };
    all.push_back(std::move(every));

    Operation one("GET", "/v1/sandboxes/{sandbox}", "getSandbox", "One sandbox", "Pools");
    one.tag = "Sandboxes";
    one.role = Role::Operator;
    one.answers = {{200, "The sandbox", schemaOf<SandboxView>()}};
    one.problems = {ErrorCode::NotFound};
    one.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.pools.sandbox(call.who, call.param("sandbox"))));
    };
    all.push_back(std::move(one));

    Operation destroy("DELETE", "/v1/sandboxes/{sandbox}", "destroySandbox", "Destroy a sandbox",
                      "Pools");
    destroy.description = "Its workspace, if it has one, ends as lost. The pool is refilled.";
    destroy.tag = "Sandboxes";
    destroy.role = Role::Operator;
    destroy.answers = {{204, "Destroyed", {}, {}}};
    destroy.problems = {ErrorCode::NotFound};
    destroy.handle = [&services](Call& call) {
        services.pools.destroySandbox(call.who, call.param("sandbox"));
        return emptyResponse();
    };
    all.push_back(std::move(destroy));
    return all;
}

Operations drainOperations(const Services& services) {
    Operations all;
    Operation one("POST", "/v1/pools/{pool}/drain", "drainPool", "End every sandbox of a pool",
                  "Pools");
    one.description = "Ends claimed ones, too. The pool stays declared and is refilled afterwards.";
    one.role = Role::Operator;
    one.answers = {{200, "How many were ended", endedSchema()}};
    one.problems = {ErrorCode::NotFound};
    one.handle = [&services](Call& call) {
        return jsonResponse({{"ended", services.pools.drain(call.who, call.param("pool"))}});
    };
    all.push_back(std::move(one));

    Operation every("POST", "/v1/drain", "drainAll", "End every sandbox of every pool", "Pools");
    every.description =
        "Pools are not refilled, and claims are refused, until /v1/undrain or the next start.";
    every.role = Role::Admin;
    every.answers = {{200, "How many were ended", endedSchema()}};
    every.handle = [&services](Call& call) {
        return jsonResponse({{"ended", services.pools.drainAll(call.who)}});
    };
    all.push_back(std::move(every));

    Operation undrain("POST", "/v1/undrain", "undrainAll", "Fill the pools again after a drain",
                      "Pools");
    undrain.description = "Has no effect if POST /v1/drain was not called before.";
    undrain.role = Role::Admin;
    undrain.answers = {{204, "The pools are filled, and claims are served", {}, {}}};
    undrain.handle = [&services](Call& call) {
        services.pools.undrainAll(call.who);
        return emptyResponse();
    };
    all.push_back(std::move(undrain));
    return all;
}

Operation createPoolOperation(const Services& services) {
    Operation op("POST", "/v1/pools", "createPool", "Declare a pool", "Pools");
    op.role = Role::Operator;
    op.idempotent = op.replayed = true;
    op.parameters = {idempotencyKeyParameter()};
    op.body_kind = Body::Json;
    op.body = manifestSchema();
    op.answers = {{201, "The pool", schemaOf<PoolView>()}};
    op.problems = {ErrorCode::Conflict, ErrorCode::InvalidSpec, ErrorCode::Unsupported,
                   ErrorCode::IdempotencyInFlight, ErrorCode::IdempotencyMismatch};
    op.handle = [&services](Call& call) {
        takeServerFields(call.body, call.request);
        return poolResponse(services.pools.create(call.who, call.body), 201);
    };
    return op;
}

Operation putPoolOperation(const Services& services) {
    Operation op("PUT", "/v1/pools/{pool}", "putPool", "Declare or replace a pool", "Pools");
    op.description = "What `hearth apply` does. A pool that was read may be sent back as it is.";
    op.role = Role::Operator;
    op.body_kind = Body::Json;
    op.body = manifestSchema();
    op.parameters = {ifMatchParameter()};
    op.answers = {{200, "Replaced", schemaOf<PoolView>()}, {201, "Declared", schemaOf<PoolView>()}};
    // With If-Match, or a resourceVersion in the body, a pool that no longer exists gives 404.
    op.problems = {ErrorCode::NotFound, ErrorCode::PreconditionFailed, ErrorCode::InvalidSpec,
                   ErrorCode::Unsupported};
    op.handle = [&services](Call& call) {
        const std::optional<std::int64_t> version = takeServerFields(call.body, call.request);
        bool created = false;
        const PoolView view =
            services.pools.put(call.who, call.param("pool"), call.body, version, created);
        return poolResponse(view, created ? 201 : 200);
    };
    return op;
}

Operation patchPoolOperation(const Services& services) {
    Operation op("PATCH", "/v1/pools/{pool}", "patchPool", "Change a pool", "Pools");
    op.role = Role::Operator;
    op.body_kind = Body::Json;
    op.body = mergeSchema();
    op.parameters = {ifMatchParameter()};
    op.answers = {{200, "The pool as it is now", schemaOf<PoolView>()}};
    op.problems = {ErrorCode::NotFound, ErrorCode::PreconditionFailed, ErrorCode::InvalidSpec,
                   ErrorCode::Unsupported};
    op.handle = [&services](Call& call) {
        const std::optional<std::int64_t> version = takeServerFields(call.body, call.request);
        return poolResponse(services.pools.patch(call.who, call.param("pool"), call.body, version));
    };
    return op;
}

}  // namespace

Operations poolOperations(const Services& services) {
    Operations all;

    Operation list("GET", "/v1/pools", "listPools", "All pools", "Pools");
    list.parameters = wholeListParameters();
    list.answers = {{200, "Every pool", listSchema<PoolView>("PoolList")}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.pools.list(call.who),
                                 [](const PoolView& view) { return view.pool->name; });
        return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
    };
    all.push_back(std::move(list));
    all.push_back(createPoolOperation(services));

    Operation get("GET", "/v1/pools/{pool}", "getPool", "One pool", "Pools");
    get.parameters = {headerParameter(
        "If-None-Match",
        "304 where the declaration's ETag is still this one; its status may have changed")};
    get.answers = {{200, "The pool, with its ETag", schemaOf<PoolView>()},
                   {304, "Declared as before", {}, {}}};
    get.problems = {ErrorCode::NotFound};
    get.handle = [&services](Call& call) {
        api::Response response = poolResponse(services.pools.get(call.who, call.param("pool")));
        const std::string known = call.request.header("If-None-Match").value_or("");
        if (known.empty() || !etagMatches(known, response.headers.get("ETag"))) return response;
        response.status = 304;
        response.body = std::string();
        return response;
    };
    all.push_back(std::move(get));
    all.push_back(putPoolOperation(services));
    all.push_back(patchPoolOperation(services));

    Operation remove("DELETE", "/v1/pools/{pool}", "deletePool", "Delete a pool", "Pools");
    remove.description =
        "Warm sandboxes end at once; claimed ones live until their workspace ends.";
    remove.role = Role::Operator;
    remove.answers = {{204, "Deleted", {}, {}}};
    remove.problems = {ErrorCode::NotFound};
    remove.handle = [&services](Call& call) {
        services.pools.remove(call.who, call.param("pool"));
        return emptyResponse();
    };
    all.push_back(std::move(remove));

    for (Operation& op : drainOperations(services)) all.push_back(std::move(op));
    for (Operation& op : sandboxOperations(services)) all.push_back(std::move(op));
    return all;
}

}  // namespace hearth::rest
