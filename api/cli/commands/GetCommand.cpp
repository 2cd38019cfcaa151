#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

CommandSpec getSpec() {
    std::vector<Flag> flags = {
        Flag{.name = "workspace",
             .letter = 'w',
             .value = "ID",
             .help = "The workspace of executions, contexts and files"},
        Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "Only sandboxes of this pool"},
        Flag{.name = "follow", .letter = 'f', .help = "Follow new events", .environment = false},
    };
    return {
        .name = "get",
        .arguments = "WHAT [NAME]",
        .summary = "Show what the server has.",
        .details =
            "  hearth get pools              hearth get pool NAME\n"
            "  hearth get workspaces         hearth get workspace ID\n"
            "  hearth get sandboxes [-p P]   hearth get sandbox ID\n"
            "  hearth get executions -w ID   hearth get execution ID\n"
            "  hearth get contexts -w ID     hearth get context ID\n"
            "  hearth get files -w ID\n"
            "  hearth get events [--follow]\n"
            "  hearth get capabilities",
        .flags = withClientFlags(withOutputFlags(std::move(flags))),
        .least = 1,
        .most = 2,
        .operands = {"pools|workspaces|sandboxes|executions|contexts|files|events|capabilities|"
                     "pool|workspace|sandbox|execution|context",
                     "@kind"},
    };
}

struct Kind {
    const char* one;
    const char* many;
    const char* target;  ///< of the list
    TableOf table;
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> kKinds = {
        {"pool", "pools", "/v1/pools", poolTable},
        {"workspace", "workspaces", "/v1/workspaces", workspaceTable},
        {"sandbox", "sandboxes", "/v1/sandboxes", sandboxTable},
        {"execution", "executions", "", executionTable},
        {"context", "contexts", "", contextTable},
        {"file", "files", "", fileTable},
    };
    return kKinds;
}

std::string workspaceTarget(const Options& options, const std::string& what) {
    const auto workspace = options.get("workspace");
    if (!workspace) throw UsageError("whose " + what + "?", "give --workspace ID");
    return "/v1/workspaces/" + percentEncode(*workspace) + "/" + what;
}

int getList(const Invocation& call, const Kind& kind) {
    const bool json = wantsJson(call.options);
    Remote remote(call.options);
    std::string target = kind.target;
    if (target.empty()) target = workspaceTarget(call.options, kind.many);
    if (target == "/v1/sandboxes") {
        if (const auto pool = call.options.get("pool")) {
            target = "/v1/pools/" + percentEncode(*pool) + "/sandboxes";
        }
    }
    if (kind.table == fileTable) target += "?path=.&recursive=true";
    const std::vector<Json> items = remote.list(target);
    if (json) {
        call.console.out << jsonText(Json{{"items", items}}) << '\n';
    } else if (items.empty()) {
        call.console.note("no " + std::string(kind.many));
    } else {
        call.console.out << kind.table(items, SystemClock().wall());
    }
    return kOk;
}

int getOne(const Invocation& call, const Kind& kind) {
    const bool json = wantsJson(call.options);
    Remote remote(call.options);
    const Json item = remote.get("/v1/" + std::string(kind.many) + "/" +
                                 percentEncode(call.options.positional()[1]));
    if (json) {
        call.console.out << jsonText(item) << '\n';
    } else {
        call.console.out << fieldList(item);
    }
    return kOk;
}

int getEvents(const Invocation& call) {
    const bool json = wantsJson(call.options);
    Remote remote(call.options);
    if (!call.options.on("follow")) {
        const std::vector<Json> items = remote.list("/v1/events");
        if (json) {
            call.console.out << jsonText(Json{{"items", items}}) << '\n';
        } else if (items.empty()) {
            call.console.note("no events");
        } else {
            call.console.out << eventTable(items, SystemClock().wall());
        }
        return kOk;
    }
    http::ClientRequest request;
    request.target = "/v1/events";
    remote.events(request, [&](const http::SseEvent& event) {
        const Json item = parseJson(event.data);
        if (item.is_object()) {
            call.console.out << (json ? jsonText(item, -1) : eventLine(item)) << '\n' << std::flush;
        }
        return call.console.out.good();
    });
    return kOk;
}

int get(const Invocation& call) {
    const std::string& what = call.options.positional()[0];
    const bool named = call.options.positional().size() > 1;
    if (call.options.on("follow") && what != "events") {
        throw UsageError("--follow works only with events", "hearth get events --follow");
    }
    if (what == "events" || what == "capabilities") {
        if (named) throw UsageError("\"" + what + "\" takes no name", "leave it out");
        if (what == "events") return getEvents(call);
        const Json answer = Remote(call.options).get("/v1/capabilities");
        call.console.out << (wantsJson(call.options) ? jsonText(answer) + "\n" : fieldList(answer));
        return kOk;
    }
    std::vector<std::string> words{"events", "capabilities"};
    for (const Kind& kind : kinds()) {
        if (what == kind.one || what == kind.many) {
            if (named && kind.table == fileTable) {
                throw UsageError("files are listed, not shown", "leave the name out");
            }
            if (named) return getOne(call, kind);
            if (what == kind.one) {
                throw UsageError("which " + what + "?",
                                 "give its name, or say " + std::string(kind.many));
            }
            return getList(call, kind);
        }
        words.emplace_back(kind.one);
        words.emplace_back(kind.many);
    }
    throw unknownWord("there is no \"" + what + "\" to get", what, words,
                      "see `hearth get --help`");
}

}  // namespace

Command makeGet() {
    return {getSpec(), get};
}

}  // namespace hearth::cli
