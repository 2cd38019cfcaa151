#include "api/mcp/seeds/http/PlainTools.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/auth/Audited.h"
#include "api/files/WorkspaceFile.h"
#include "api/http/FileAnswer.h"
#include "api/http/RequestFacts.h"
#include "api/http/TaskAnswer.h"
#include "api/mcp/seeds/SeedPaths.h"
#include "api/mcp/seeds/SeedToolkit.h"
#include "api/mcp/seeds/Seeds.h"
#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

using controller::Services;

Json readArguments(api::Request& request) {
    const std::string text = request.readBody(PlainTools::kMaxBody);
    if (text.empty()) return Json::object();
    if (api::mediaTypeOf(request) != "application/json") {
        throw Error(ErrorCode::InvalidArgument, "the arguments need Content-Type: application/json")
            .hint("send them as one JSON object, or no body where there are none");
    }
    JsonLimits limits;
    limits.bytes = PlainTools::kMaxBody;
    return parseJson(text, limits);
}

api::Response answered(const ToolResult& result) {
    api::Response response;
    response.headers = {{"Content-Type", "application/json"}};
    response.body = dumpJson(seeds::plainValue(result));
    return response;
}

void count(const Services& services, const std::string& tool, const char* how) {
    services.metrics.mcp("tools/call", tool, how);
}

/// Makes a name safe for a header's quoted text: quotes and unusual characters become '_'.
std::string quotable(std::string name) {
    std::replace_if(
        name.begin(), name.end(),
        [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; }, '_');
    return name;
}

}  // namespace

PlainTools::PlainTools(const Services& services, const auth::Authenticator& authenticator,
                       const auth::WorkerShares& shares, const auth::RateLimits& limits,
                       const std::string& seed)
    : services_(services), authenticator_(authenticator), shares_(shares), limits_(limits) {
    for (seeds::Seed& one : seeds::seeds(services)) tools_[one.name] = std::move(one.bare);
    router_.add("POST", "/mcp/tools/{tool}",
                [this, seed](api::Request& request, const api::RouteParams& path) {
                    return callTool(request, seed, path.param("tool"));
                });
    router_.add("POST", "/compat/{seed}/tools/{tool}",
                [this](api::Request& request, const api::RouteParams& path) {
                    return callTool(request, path.param("seed"), path.param("tool"));
                });
    router_.add("GET", "/sandbox/file", [this](api::Request& request, const api::RouteParams&) {
        return sandboxFile(request);
    });
}

bool PlainTools::takes(const std::string& path) {
    return path == "/compat" || path.starts_with("/compat/") || path.starts_with("/mcp/tools/") ||
           path == "/sandbox/file";
}

api::Response PlainTools::handle(api::Request& request) {
    const std::string& path = request.path();
    if (path.starts_with("/compat") && router_.allowed(request.rawPath()).empty()) {
        std::string names;
        for (const auto& [name, tools] : tools_) names += (names.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::NotFound, "there is nothing at this path")
            .hint("For each SEED of " + names +
                  " there are MCP at /compat/SEED/mcp and /compat/SEED/sse, and its tools as POST "
                  "/compat/SEED/tools/TOOL");
    }
    return router_.handle(request);
}

api::Response PlainTools::callTool(api::Request& request, const std::string& seed,
                                   const std::string& name) const {
    CallContext call;
    call.call = std::make_shared<Call>();
    metrics::AuditEntry draft;
    draft.surface = "tools";
    draft.operation = toUtf8(seed + " " + name);
    const auto entry = auth::audited(request, services_.audit, std::move(draft), false);
    call.who = authenticator_.authenticate(request);
    auth::sayWho(entry, call.who);
    auth::require(limits_, request, call.who.tenant);
    call.started_at = request.startedAt();
    call.origin = api::originOf(request);
    return shares_.answer(request, call.who.tenant, [this, &request, seed, name, call] {
        return called(request, seed, name, call);
    });
}

api::Response PlainTools::called(api::Request& request, const std::string& seed,
                                 const std::string& name, const CallContext& call) const {
    const auto tools = tools_.find(seed);
    if (tools == tools_.end()) {
        throw Error(ErrorCode::NotFound, "there is no seed " + toUtf8(seed))
            .hint("they are s0, s1, s2 and s3");
    }
    const auto tool = std::find_if(tools->second.begin(), tools->second.end(),
                                   [&name](const Tool& one) { return one.name == name; });
    if (tool == tools->second.end()) {
        std::string names;
        for (const Tool& one : tools->second) names += (names.empty() ? "" : ", ") + one.name;
        throw Error(ErrorCode::NotFound, "there is no tool " + toUtf8(name))
            .hint("the tools of " + seed + " are " + names);
    }
    std::shared_ptr<void> large;
    if (request.contentLength().value_or(kLargeBody) >= kLargeBody) {
        large = large_.take(call.who.tenant);
    }
    Json arguments = withoutNulls(tool->schema, readArguments(request));
    large.reset();
    const std::vector<std::string> problems = argumentProblems(tool->schema, arguments);
    if (!problems.empty()) {
        Error error(ErrorCode::InvalidArgument, "the arguments of " + name + " are not right");
        std::string all;
        for (const std::string& problem : problems) all += (all.empty() ? "" : "; ") + problem;
        throw error.hint(all);
    }
    return api::answerOf(request, answer(*tool, call, Arguments(std::move(arguments))));
}

Task<api::Response> PlainTools::answer(const Tool& tool, CallContext call,
                                       Arguments arguments) const {
    try {
        ToolOutcome outcome = tool.handler(call, arguments);
        if (auto* work = std::get_if<Task<ToolResult>>(&outcome)) {
            Task<ToolResult> going = std::move(*work);
            outcome = co_await going;
        }
        api::Response response = answered(std::get<ToolResult>(outcome));
        count(services_, tool.name, "ok");
        co_return response;
    } catch (const Error&) {
        count(services_, tool.name, "tool_error");
        throw;
    }
}

std::string PlainTools::sandboxOf(const controller::Principal& who,
                                  const api::Request& request) const {
    if (const auto id = request.query("sandbox_id"); id && !id->empty()) return *id;
    const std::string name = request.query("sandbox_name").value_or("");
    if (name.empty()) {
        throw Error(ErrorCode::InvalidArgument, "sandbox_id or sandbox_name is needed");
    }
    std::string found;
    controller::ListQuery query;
    query.limit = 1000;
    do {
        const auto page = services_.workspaces.list(who, query);
        for (const controller::WorkspaceView& view : page.items) {
            if (view.tenant != who.tenant || (view.name != name && view.id != name)) continue;
            if (!found.empty()) {
                throw Error(ErrorCode::Conflict, "several of your sandboxes have this name")
                    .hint("name it by sandbox_id");
            }
            found = view.id;
        }
        query.cursor = page.next_cursor;
    } while (!query.cursor.empty());
    if (found.empty()) throw Error(ErrorCode::NotFound, "you have no sandbox of this name");
    return found;
}

api::Response PlainTools::sandboxFile(api::Request& request) const {
    metrics::AuditEntry draft;
    draft.surface = "tools";
    draft.operation = "sandbox file";
    const auto entry = auth::audited(request, services_.audit, std::move(draft), true);
    const controller::Principal who = authenticator_.authenticate(request);
    auth::sayWho(entry, who);
    auth::require(limits_, request, who.tenant);
    return shares_.answer(request, who.tenant, [this, &request, who] {
        std::string path = request.query("file_path").value_or("");
        if (path.empty()) throw Error(ErrorCode::InvalidArgument, "file_path is needed");
        path = seeds::pathInWorkspace(path);
        api::FileSource source = api::workspaceFile(services_, who, sandboxOf(who, request), path);
        source.name = quotable(seeds::baseName(path));
        return api::fileAnswer(request, std::move(source));
    });
}

}  // namespace hearth::mcp
