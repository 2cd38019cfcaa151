#include "api/mcp/tools/Toolbox.h"
#include "base/Units.h"

namespace hearth::mcp {
namespace {

using controller::ClaimLedger;
using controller::Services;
using controller::WorkspaceView;

constexpr std::int64_t kLongestLife = 30LL * 24 * 3600;  ///< seconds, as in REST

std::string milliseconds(double value) {
    std::string text = std::to_string(value);
    text.resize(text.find('.') + 2);
    return text + " ms";
}

std::string deadlines(const WorkspaceView& view) {
    std::string text = view.idle_expires_at ? "ends when idle at " + *view.idle_expires_at
                                            : std::string("busy, so not idle");
    if (view.expires_at) text += ", at the latest at " + *view.expires_at;
    return text;
}

std::string limitsText(const pool::SandboxLimits& limits) {
    return formatMilliCpu(limits.milli_cpu) + " cpu, " + formatBytes(limits.memory_bytes) +
           " memory, " + formatBytes(limits.workspace_bytes) + " files, " +
           std::to_string(limits.pids) + " processes";
}

std::string listed(const std::vector<std::string>& texts) {
    std::string out;
    for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
    return out;
}

/// Returns the patterns of the server's configuration; empty if there are none.
std::string allowedImages(const Json& capabilities) {
    const auto rules = capabilities.find("onDemand");
    if (rules == capabilities.end() || !rules->contains("allow")) return {};
    std::string text;
    for (const Json& pattern : (*rules)["allow"]) {
        text += (text.empty() ? "" : ", ") + pattern.get<std::string>();
    }
    return text;
}

ToolOutcome poolList(const Services& services, const CallContext& call) {
    const Json capabilities = services.capabilities();
    std::string text;
    for (const controller::PoolView& view : services.pools.list(call.who)) {
        text += poolFacts(view, imageLanguages(capabilities, view.pool->spec.image)) + "; image " +
                view.pool->spec.image + "; " + std::to_string(view.status.ready) + " ready, " +
                std::to_string(view.status.claimed) + " in use, at most " +
                std::to_string(view.pool->spec.max_members) + ", " +
                std::to_string(view.pool->spec.per_tenant) + " for you" +
                (view.status.packages ? "; installed: " + listed(view.pool->spec.prewarm_packages)
                                      : "") +
                (view.pool->on_demand.empty() ? "" : "; made for image " + view.pool->on_demand) +
                (view.pool->deleting ? "; being deleted" : "") + "\n";
    }
    if (const std::string allowed = allowedImages(capabilities); !allowed.empty()) {
        text += "Images without a pool that may be asked for by name: " + allowed + "\n";
    }
    if (text.empty()) text = "No pool is declared. An operator adds one with `hearth apply`.\n";
    text.pop_back();
    return textResult(text);
}

/// Lists the credentials that code need not have and cannot read.
std::string credentialsText(const WorkspaceView& view) {
    std::string out;
    for (const Json& credential : view.credentials) {
        out += "requests to " + credential["scheme"].get<std::string>() + "://" +
               credential["host"].get<std::string>() + " get their credentials on the way out\n";
    }
    return out;
}

Task<ToolResult> workspaceOpen(const Services& services, CallContext call, Arguments arguments) {
    controller::WorkspaceRequest request = claimFor(call);
    request.pool = arguments.text("pool");
    request.name = arguments.text("name");
    request.image = arguments.text("image");
    request.language = arguments.text("language");
    request.gpu = gpuWish(arguments);
    if (const auto mode = arguments.text("network")) {
        request.network = egress::kNetworkModes.find(*mode);
    }
    request.env = arguments.textMap("env");
    request.secrets = arguments.textMap("secrets");
    request.files = inlineFiles(arguments);
    request.idle_timeout = arguments.seconds("idle_s");
    request.max_lifetime = arguments.seconds("ttl_s");
    request.idempotency_key = arguments.textOr("idempotency_key", "");
    if (!request.idempotency_key.empty()) {
        request.fingerprint = arguments.fingerprint(services.secret_key);
    }
    const bool keyed = !request.idempotency_key.empty();
    Task<WorkspaceView> creating = services.workspaces.create(call.who, std::move(request));
    const WorkspaceView view = co_await creating;
    const ClaimLedger claim = view.claim.value_or(ClaimLedger{});
    ToolResult result =
        textResult(view.id + "\nOpen in pool " + view.pool +
                   (view.replayed ? " (the workspace of the earlier call with this key)"
                                  : std::string(" (") + controller::kClaimSources.of(claim.source) +
                                        ", " + milliseconds(claim.total_ms) + ")") +
                   "; files in " + view.root +
                   "\nlanguages: " + listed(services.workspaces.languages(call.who, view.id)) +
                   "\nlimits: " + limitsText(view.limits) + "; " +
                   (view.gpus.empty() ? std::string() : "GPUs " + listed(view.gpus) + "; ") +
                   (view.network == egress::NetworkMode::None
                        ? std::string("no network")
                        : std::string("network ") + egress::kNetworkModes.of(view.network)) +
                   "\n" + credentialsText(view) + deadlines(view) +
                   "\nPass workspace_id to run, file_put and file_get; close it when done.");
    // With an idempotency key the workspace is found again.
    if (keyed) co_return result;
    co_return tellingOf(view, services, call, std::move(result));
}

ToolOutcome workspaceList(const Services& services, const CallContext& call,
                          const Arguments& arguments) {
    controller::ListQuery query;
    query.limit = arguments.number("limit").value_or(20);
    query.cursor = arguments.textOr("cursor", "");
    const auto page = services.workspaces.list(call.who, query);
    std::string text;
    for (const WorkspaceView& view : page.items) {
        text += view.id + "  " + controller::kWorkspacePhases.of(view.phase) + "  pool " +
                view.pool + (view.name ? "  name " + *view.name : "") + "  opened " +
                view.created_at + "  " + deadlines(view) + "\n";
    }
    if (text.empty()) text = "No open workspace. workspace_open makes one.\n";
    if (page.unanswered > 0) {
        text += std::to_string(page.unanswered) +
                " more do not answer yet, after a restart of the server; ask again in a while.\n";
    }
    if (!page.next_cursor.empty()) text += "More: workspace_list cursor=" + page.next_cursor + "\n";
    text.pop_back();
    return textResult(text);
}

ToolOutcome workspaceExtend(const Services& services, const CallContext& call,
                            const Arguments& arguments) {
    const std::string id = arguments.textOr("workspace_id", "");
    controller::WorkspacePatch patch;
    patch.idle_timeout = arguments.seconds("idle_s");
    patch.lifetime_from_now = arguments.seconds("ttl_s");
    if (!patch.idle_timeout && !patch.lifetime_from_now) {
        return textResult(id + " counts as active now; " +
                          deadlines(services.workspaces.touch(call.who, id)));
    }
    const WorkspaceView now = services.workspaces.get(call.who, id);
    const WallTime wall = services.clock.wall();
    // RFC 3339 in one fixed form sorts as text.
    if (patch.lifetime_from_now && now.expires_at &&
        formatRfc3339(wall + *patch.lifetime_from_now) < *now.expires_at) {
        throw Error(ErrorCode::InvalidArgument,
                    "ttl_s would end it earlier than now planned, " + *now.expires_at)
            .hint("Use workspace_close to end it, or a greater ttl_s.");
    }
    return textResult(id + " extended; " +
                      deadlines(services.workspaces.patch(call.who, id, patch)));
}

ToolOutcome workspaceClose(const Services& services, const CallContext& call,
                           const Arguments& arguments) {
    const std::string id = arguments.textOr("workspace_id", "");
    try {
        services.workspaces.close(call.who, id);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::Gone) throw;
        return textResult(id + " had already ended (" + error.endedReason() + ").");
    }
    return textResult(id + " is closed; its files are gone.");
}

Json openSchema() {
    return objectSchema(
        {{"pool", stringParam("A pool by name; without it the default pool.")},
         {"language", stringParam("Picks a pool whose image has this language.")},
         {"image", stringParam("The image to use, e.g. \"python:3.9-slim\". "
                               "pool_list tells which; one that must be fetched "
                               "first may take minutes: if the call times out, "
                               "repeat it.")},
         {"network",
          {{"type", "string"},
           {"enum", egress::kNetworkModes.all()},
           {"description",
            "Picks a pool that offers it: Mirror to "
            "install packages, Egress to reach what the "
            "operator allows; None for no network."}}},
         {"gpus", gpusParam()},
         {"name", stringParam("A name for your own use, shown in lists.")},
         {"env", textMapParam("Environment variables for everything run in it.")},
         {"secrets", textMapParam("The same, but never shown or logged.")},
         {"files", filesParam("Files to put into it at once.")},
         {"idle_s",
          numberParam("End it after this many seconds without activity.", 1, kLongestLife)},
         {"ttl_s", numberParam("End it after this many seconds in any case; at most "
                               "the pool's limit.",
                               1, kLongestLife)},
         {"idempotency_key", stringParam("Repeating the call with the same key "
                                         "gives the same workspace.")}});
}

}  // namespace

std::vector<Tool> workspaceTools(const Services& services) {
    std::vector<Tool> tools;
    tools.push_back({"pool_list", "List pools",
                     "Lists the pools: languages, limits, how many sandboxes are ready.",
                     objectSchema(Json::object()), toolHints(true, false, true),
                     [&services](const CallContext& call, const Arguments&) {
                         return poolList(services, call);
                     }});
    tools.push_back(
        {"workspace_open", "Open a workspace",
         "Opens an isolated workspace whose files stay until it is closed or idle for too long; "
         "usually takes a millisecond. Gives its id first. Needed only when files or state must "
         "last longer than one run. Pools: {pools}.",
         openSchema(), toolHints(false, false, false),
         [&services](const CallContext& call, const Arguments& arguments) {
             return workspaceOpen(services, call, arguments);
         }});
    tools.push_back(
        {"workspace_list", "List workspaces", "Lists your open workspaces and their deadlines.",
         objectSchema({{"limit", integerParam("At most this many; default 20.", 1, 100)},
                       {"cursor", stringParam("Where the last page ended.")}}),
         toolHints(true, false, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return workspaceList(services, call, arguments);
         }});
    tools.push_back(
        {"workspace_extend", "Extend a workspace",
         "Gives a workspace more time; without idle_s and ttl_s it only counts as activity. Never "
         "shortens its life.",
         objectSchema({{"workspace_id", workspaceParam()},
                       {"idle_s", numberParam("New idle limit in seconds.", 1, kLongestLife)},
                       {"ttl_s", numberParam("New end, in seconds from now; at most the pool's "
                                             "limit.",
                                             1, kLongestLife)}},
                      {"workspace_id"}),
         toolHints(false, false, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return workspaceExtend(services, call, arguments);
         }});
    tools.push_back(
        {"workspace_close", "Close a workspace",
         "Ends a workspace with everything that runs in it and deletes its files. Closing twice "
         "is no error.",
         objectSchema({{"workspace_id", workspaceParam()}}, {"workspace_id"}),
         toolHints(false, true, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return workspaceClose(services, call, arguments);
         }});
    return tools;
}

}  // namespace hearth::mcp
