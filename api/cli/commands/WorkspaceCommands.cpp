#include <algorithm>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/RemotePath.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

/// What a word of `ls` and `rm` names: a workspace, or a path in it.
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
        showItems(call, workspaces, itemsOf(remote, workspaces, call.options));
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
                throw UsageError("\"" + word + "\" is all of a workspace",
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
        } catch (const RemoteError& e) {  // the others are to go all the same
            call.console.error(e.what(), e.hint());
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

}  // namespace

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
             .operands = {"@remote"}},
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
                                            .help = "Directories with all that is in them",
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
             .least = 2,
             .most = 2,
             .operands = {"pool|workspace|sandbox|execution|context", "@kind"}},
            describe};
}

}  // namespace hearth::cli
