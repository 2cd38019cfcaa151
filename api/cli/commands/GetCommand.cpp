#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

CommandSpec getSpec() {
    std::vector<Flag> flags = filterFlags();
    flags.push_back(
        Flag{.name = "follow", .letter = 'f', .help = "Follow new events", .environment = false});
    flags.push_back(Flag{.name = "watch",
                         .help = "Keep watching, and print each change as a line",
                         .environment = false});
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
            "  hearth get quotas             hearth get quota TENANT\n"
            "  hearth get gpus               hearth get gpu UUID\n"
            "  hearth get events [--follow]\n"
            "  hearth get capabilities\n\n"
            "A workspace is named by its id, the beginning of it, or its name; an execution\n"
            "by its id or the beginning of it. A filter that does not apply to WHAT is an\n"
            "error.",
        .flags = withClientFlags(withListFlags(std::move(flags))),
        .least = 1,
        .most = 2,
        .operands =
            {"pools|workspaces|sandboxes|executions|contexts|files|quotas|gpus|events|capabilities|"
             "pool|workspace|sandbox|execution|context",
             "@kind"},
    };
}

int getOne(const Invocation& call, const Kind& kind) {
    checkFilters(kind, call.options, true);
    listFormat(call.options);
    Remote remote(call.options);
    const std::string id = idOf(remote, kind.one, call.options.positional()[1]);
    showItem(call, remote.get("/v1/" + std::string(kind.many) + "/" + percentEncode(id)));
    return kOk;
}

/// Calls `on_event` for each kept or new event with an id above `since`, until it returns false.
void followEvents(Remote& remote, std::uint64_t since,
                  const std::function<bool(const Json&)>& on_event) {
    http::ClientRequest request;
    request.target = "/v1/events?since=" + std::to_string(since);
    remote.events(request, [&](const http::SseEvent& event) {
        const Json item = parseJson(event.data);
        return !item.is_object() || on_event(item);
    });
}

std::uint64_t newestEvent(Remote& remote) {
    const std::vector<Json> all = remote.list("/v1/events");
    if (all.empty()) return 0;
    const Json& id = all.back().at("id");
    return id.is_string() ? std::stoull(id.get<std::string>()) : id.get<std::uint64_t>();
}

/// An event only triggers a new look; the lists show the change.
int watch(const Invocation& call, const Kind& kind) {
    Remote remote(call.options);
    Remote lists = remote.another();
    const std::uint64_t newest = newestEvent(lists);
    std::map<std::string, Json> shown;
    const auto look = [&] {
        std::vector<Json> changed;
        std::map<std::string, Json> now;
        for (const Json& item : itemsOf(lists, kind, call.options)) {
            const std::string name = nameOf(item);
            const auto before = shown.find(name);
            if (before == shown.end() || before->second != item) changed.push_back(item);
            now[name] = item;
        }
        for (const auto& [name, item] : shown) {
            if (!now.contains(name)) call.console.note(name + " has gone");
        }
        shown = std::move(now);
        if (!changed.empty()) showItems(call, kind, changed);
        call.console.out << std::flush;
        return call.console.out.good();
    };
    look();
    followEvents(remote, newest, [&](const Json&) { return look(); });
    return kOk;
}

int followEvents(const Invocation& call, const Kind& kind) {
    checkFilters(kind, call.options, false);
    const bool json = listFormat(call.options) == OutputFormat::Json;
    Remote remote(call.options);
    const WantedFields wanted = wantedFields(remote, kind, call.options);
    followEvents(remote, 0, [&](const Json& item) {
        if (!hasFields(item, wanted)) return true;
        call.console.out << (json ? jsonText(item, -1) : eventLine(item)) << '\n' << std::flush;
        return call.console.out.good();
    });
    return kOk;
}

/// Translates words of other programs into kinds, and into commands for things that have their own.
std::string ownWord(const std::string& word) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kMeant = {{
        {"pod", "get sandboxes"},
        {"pods", "get sandboxes"},
        {"container", "get sandboxes"},
        {"containers", "get sandboxes"},
        {"run", "get executions"},
        {"runs", "get executions"},
        {"ps", "get executions"},
        {"info", "get capabilities"},
        {"image", "image list"},
        {"images", "image list"},
        {"token", "token list"},
        {"tokens", "token list"},
    }};
    for (const auto& [other, ours] : kMeant) {
        if (word == other) return "type `hearth " + std::string(ours) + "`";
    }
    return {};
}

int get(const Invocation& call) {
    const std::string& what = call.options.positional()[0];
    const bool named = call.options.positional().size() > 1;
    if (call.options.on("follow") && what != "events") {
        throw UsageError("--follow works only with events", "hearth get events --follow");
    }
    if (call.options.on("watch") && (named || what == "events" || what == "capabilities")) {
        throw UsageError("--watch goes with a list", "hearth get workspaces --watch");
    }
    if (what == "capabilities") {
        if (named) throw UsageError("\"" + what + "\" takes no name", "leave it out");
        checkFilters({"capabilities", "capabilities", "", nullptr, nullptr}, call.options, false);
        showItem(call, Remote(call.options).get("/v1/capabilities"));
        return kOk;
    }
    const Kind* kind = findKind(what);
    if (kind == nullptr) {
        const std::string unknown = "there is no \"" + what + "\" to get";
        if (const std::string hint = ownWord(what); !hint.empty()) throw UsageError(unknown, hint);
        std::vector<std::string> words = kindWords();
        words.emplace_back("capabilities");
        throw unknownWord(unknown, what, words);
    }
    const bool listed_only = kind->table == fileTable || kind->table == eventTable;
    if (named && listed_only) {
        throw UsageError(std::string(kind->many) + " are listed, not shown", "leave the name out");
    }
    if (named) return getOne(call, *kind);
    if (call.options.on("follow")) return followEvents(call, *kind);
    checkFilters(*kind, call.options, false);
    listFormat(call.options);
    if (call.options.on("watch")) return watch(call, *kind);
    Remote remote(call.options);
    showList(call, *kind, remote);
    return kOk;
}

}  // namespace

Command makeGet() {
    return {getSpec(), get};
}

}  // namespace hearth::cli
