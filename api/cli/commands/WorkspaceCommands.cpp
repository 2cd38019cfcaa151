#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/RemotePath.h"
#include "api/cli/remote/RunRequest.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

/// The workspace, or the path in it, for a word of `ls` and `rm`.
RemotePath placeOf(Remote& remote, const std::string& word) {
    RemotePath place = RemotePath::parse(word).value_or(RemotePath{word, ".", true});
    place.workspace = workspaceId(remote, place.workspace);
    return place;
}

int ls(const Invocation& call) {
    listFormat(call.options);
    Remote remote(call.options);
    if (call.options.positional().empty()) {
        const Kind& workspaces = *findKind("workspaces");
        showList(call, workspaces, remote);
        return kOk;
    }
    for (const char* flag : {"label", "pool"}) {
        if (call.options.source(flag) != Source::Flag) continue;
        throw UsageError(std::string("--") + flag + " chooses workspaces, not files",
                         "leave it out");
    }
    const RemotePath place = placeOf(remote, call.options.positional()[0]);
    showItems(call, *findKind("files"), remote.list(place.listTarget()));
    return kOk;
}

int rm(const Invocation& call) {
    Remote remote(call.options);
    int status = kOk;
    for (const std::string& word : call.options.positional()) {
        try {
            const RemotePath place = placeOf(remote, word);
            const bool whole = word.find(':') == std::string::npos;
            if (!whole && place.path == ".") {
                throw UsageError("\"" + word + "\" is a whole workspace",
                                 "hearth rm WORKSPACE ends it, with its files");
            }
            std::string target = "/v1/workspaces/" + percentEncode(place.workspace);
            if (!whole) {
                target = place.fileTarget();
                if (call.options.on("recursive")) target += "?recursive=true";
            }
            remote.send("DELETE", target);
            call.console.out << (whole ? "workspace " + printable(place.workspace)
                                       : printable(word))
                             << " deleted\n"
                             << std::flush;
        } catch (const RemoteError& e) {  // the others must be deleted all the same
            const bool full = e.code() == "CONFLICT" && !call.options.on("recursive");
            call.console.error(e.what(), full ? "hearth rm -r " + word +
                                                    " deletes a directory "
                                                    "and all that is in it"
                                              : e.hint());
            status = std::max(status, exitStatusOf(e));
        }
    }
    return status;
}

void showPart(const Invocation& call, const char* kind, const std::vector<Json>& items) {
    if (items.empty()) return;
    const Kind& shown = *findKind(kind);
    call.console.out << '\n' << shown.many << ":\n" << shown.table(items, SystemClock().wall());
}

int describe(const Invocation& call) {
    const std::string& word = call.options.positional()[0];
    const Kind* kind = findKind(word);
    const std::vector<std::string> known{"pool", "workspace", "sandbox", "execution", "context"};
    if (call.options.positional().size() == 1) {
        throw UsageError("what is " + word + "?",
                         "hearth describe workspace " + word + ", or: " + anyOf(known));
    }
    if (kind == nullptr || std::ranges::find(known, kind->one) == known.end()) {
        throw unknownWord("there is no \"" + word + "\" to describe", word, known);
    }
    Remote remote(call.options);
    const std::string id = idOf(remote, kind->one, call.options.positional()[1]);
    const std::string target = "/v1/" + std::string(kind->many) + "/" + percentEncode(id);
    call.console.out << fieldList(remote.get(target));
    const std::string_view one = kind->one;
    if (one == "workspace") {
        showPart(call, "executions", remote.list(target + "/executions"));
    } else if (one == "pool") {
        showPart(call, "sandboxes", remote.list(target + "/sandboxes"));
    }
    showPart(call, "events", remote.list("/v1/events?resource=" + percentEncode(id)));
    return kOk;
}

int open(const Invocation& call) {
    Json body = Json::object();
    if (const auto pool = call.options.get("pool")) body["pool"] = *pool;
    if (const auto image = call.options.get("image")) body["image"] = *image;
    if (const auto name = call.options.get("name")) body["name"] = *name;
    if (Json limits = limitsOf(call.options); !limits.empty()) body["limits"] = std::move(limits);
    if (Json gpu = gpuOf(call.options); !gpu.empty()) body["gpu"] = std::move(gpu);
    if (Json env = variablesOf(call.options, "env"); !env.empty()) body["env"] = std::move(env);
    if (Json labels = variablesOf(call.options, "label"); !labels.empty())
        body["labels"] = std::move(labels);
    const auto seconds = [&](const char* flag, const char* key) {
        if (const auto value = call.options.duration(flag)) body[key] = value->count() / 1000;
    };
    seconds("idle-timeout", "idleTimeoutSeconds");
    seconds("max-lifetime", "maxLifetimeSeconds");
    const bool json = wantsJson(call.options);
    if (const auto count = call.options.get("count")) {
        if (count->empty() || count->size() > 3 ||
            count->find_first_not_of("0123456789") != std::string::npos) {
            throw UsageError("\"" + *count + "\" is not a number of workspaces",
                             "-n 3 opens three");
        }
        body["count"] = std::stoi(*count);
        const Json all = Remote(call.options).send("POST", "/v1/workspaces:batch", body).body;
        if (json) {
            call.console.out << jsonText(all) << '\n';
            return kOk;
        }
        for (const Json& one : all.at("items"))
            call.console.out << printable(one.value("id", "")) << '\n';
        return kOk;
    }
    const Json workspace = Remote(call.options).send("POST", "/v1/workspaces", body).body;
    if (json) {
        call.console.out << jsonText(workspace) << '\n';
    } else {
        call.console.out << printable(workspace.value("id", "")) << '\n';
    }
    return kOk;
}

}  // namespace

Command makeOpen() {
    std::vector<Flag> flags = {
        Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "The pool"},
        Flag{.name = "image",
             .value = "IMAGE",
             .help = "The image to use, by name, reference or digest",
             .environment = false},
        Flag{.name = "name", .value = "TEXT", .help = "A name", .environment = false},
        Flag{.name = "env",
             .letter = 'e',
             .value = "K=V",
             .help = "A variable for everything in it",
             .repeats = true,
             .environment = false},
        Flag{.name = "label",
             .value = "K=V",
             .help = "A label",
             .repeats = true,
             .environment = false},
        Flag{.name = "count",
             .letter = 'n',
             .value = "N",
             .help = "Open this many, all or none, and print one id per line",
             .environment = false},
        Flag{.name = "idle-timeout",
             .value = "DURATION",
             .help = "End it after this time without activity"},
        Flag{.name = "max-lifetime", .value = "DURATION", .help = "End it after this time"},
    };
    for (Flag& flag : limitFlags()) flags.push_back(std::move(flag));
    return {{.name = "open",
             .arguments = "",
             .summary = "Open a workspace and print its id.",
             .details = "  W=$(hearth open --pool python)\n"
                        "  hearth run -w $W -c 'open(\"a\", \"w\").write(\"kept\")'\n"
                        "  hearth delete workspace $W",
             .flags = withClientFlags(withOutputFlags(std::move(flags), true))},
            open};
}

Command makeList() {
    return {{.name = "ls",
             .arguments = "[WORKSPACE[:PATH]]",
             .summary = "List workspaces, or the files of one.",
             .details = "  hearth ls\n"
                        "  hearth ls -l team=red -q\n"
                        "  hearth ls mine:out",
             .flags = withClientFlags(withListFlags({Flag{.name = "label",
                                                          .letter = 'l',
                                                          .value = "K=V",
                                                          .help = "Only workspaces with this label",
                                                          .repeats = true,
                                                          .environment = false},
                                                     Flag{.name = "pool",
                                                          .letter = 'p',
                                                          .value = "NAME",
                                                          .help = "Only workspaces of this pool",
                                                          .environment = false}})),
             .least = 0,
             .most = 1,
             .operands = {"@remote"},
             .others = {{"--watch", "hearth get workspaces --watch"},
                        {"-w", "hearth get workspaces --watch"},
                        {"-a", "hearth get events shows ended workspaces"},
                        {"--all", "hearth get events shows ended workspaces"}}},
            ls};
}

Command makeRemove() {
    return {{.name = "rm",
             .arguments = "WORKSPACE|WORKSPACE:PATH…",
             .summary = "End workspaces, or delete files in them.",
             .details = "  hearth rm mine ws_4f0c…       ends them; their files are gone\n"
                        "  hearth rm mine:out/a.txt\n"
                        "  hearth rm -r mine:out",
             .flags = withClientFlags({Flag{.name = "recursive",
                                            .letter = 'r',
                                            .help = "Delete directories with all that is in them",
                                            .environment = false}}),
             .least = 1,
             .most = 1000,
             .operands = {"@remote"}},
            rm};
}

Command makeDescribe() {
    return {{.name = "describe",
             .arguments = "pool|workspace|sandbox|execution|context NAME",
             .summary = "Show one thing, what belongs to it and what happened to it.",
             .details = "  hearth describe workspace mine\n"
                        "  hearth describe pool python",
             .flags = clientFlags(),
             .least = 1,
             .most = 2,
             .operands = {"pool|workspace|sandbox|execution|context", "@kind"}},
            describe};
}

}  // namespace hearth::cli
