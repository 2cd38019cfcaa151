#include "api/cli/remote/Kinds.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "api/cli/remote/References.h"
#include "api/command/OutputFormat.h"
#include "api/command/Yaml.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

/// The effect of one filter on one kind.
struct Filter {
    std::string_view kind;
    std::string_view flag;
    const char* field = "";  ///< an item's field, compared here; empty: the server filters
};

constexpr std::array<Filter, 14> kFilters = {{
    {"workspaces", "pool", "pool"},
    {"workspaces", "tenant", "tenant"},
    {"workspaces", "label"},
    {"sandboxes", "pool"},
    {"sandboxes", "workspace", "workspaceId"},
    {"executions", "workspace"},
    {"contexts", "workspace"},
    {"files", "workspace"},
    {"events", "pool", "pool"},
    {"events", "tenant", "tenant"},
    {"events", "type", "type"},
    {"events", "resource", "resource"},
    {"events", "workspace", "resource"},
    {"sandboxes", "type", "phase"},
}};

const Filter* findFilter(const Kind& kind, std::string_view flag) {
    for (const Filter& filter : kFilters) {
        if (filter.kind == kind.many && filter.flag == flag) return &filter;
    }
    return nullptr;
}

bool ofWorkspace(const Kind& kind) {
    const std::string_view many = kind.many;
    return many == "executions" || many == "contexts" || many == "files";
}

/// Only typed flags filter: the variable that names a default workspace hides nothing here.
bool typed(const Options& options, const std::string& flag) {
    return options.source(flag) == Source::Flag;
}

std::string listTarget(Remote& remote, const Kind& kind, const Options& options) {
    const std::string many = kind.many;
    if (ofWorkspace(kind)) {
        const auto workspace = options.get("workspace");
        if (!workspace)
            throw UsageError("which workspace's " + many + "?",
                             many == "executions"
                                 ? "give --workspace ID; `hearth ps --all` lists all executions"
                                 : "give --workspace ID");
        const std::string target =
            "/v1/workspaces/" + percentEncode(workspaceId(remote, *workspace)) + "/" + many;
        return many == "files" ? target + "?path=.&recursive=true" : target;
    }
    // Then the server reports a missing pool.
    if (many == "sandboxes" && typed(options, "pool")) {
        return "/v1/pools/" + percentEncode(options.get("pool", "")) + "/sandboxes";
    }
    std::string target = "/v1/" + many;
    for (const std::string& label : options.all("label")) {
        if (label.find('=') == std::string::npos || label.front() == '=') {
            throw UsageError("\"" + label + "\" is not a label", "write --label K=V");
        }
        target +=
            (target.find('?') == std::string::npos ? "?label=" : "&label=") + percentEncode(label);
    }
    return target;
}

}  // namespace

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> kKinds = {
        {"pool", "pools", "po", poolTable, poolTable},
        {"workspace", "workspaces", "ws", workspaceTable, wideWorkspaceTable},
        {"sandbox", "sandboxes", "sb", sandboxTable, sandboxTable},
        {"execution", "executions", "ex", executionTable, wideExecutionTable},
        {"context", "contexts", "cx", contextTable, contextTable},
        {"file", "files", "fi", fileTable, fileTable},
        {"quota", "quotas", "qu", quotaTable, quotaTable},
        {"gpu", "gpus", "gp", gpuTable, gpuTable},
        {"event", "events", "ev", eventTable, eventTable},
    };
    return kKinds;
}

const Kind* findKind(const std::string& word) {
    const auto found = std::ranges::find_if(kinds(), [&](const Kind& kind) {
        return word == kind.one || word == kind.many || word == kind.abbreviation;
    });
    return found == kinds().end() ? nullptr : &*found;
}

std::vector<std::string> kindWords() {
    std::vector<std::string> words;
    for (const Kind& kind : kinds()) words.insert(words.end(), {kind.one, kind.many});
    return words;
}

std::vector<Flag> filterFlags() {
    return {Flag{.name = "workspace",
                 .letter = 'w',
                 .value = "ID",
                 .help = "Of this workspace: executions, contexts, files, sandboxes, events"},
            ownFlag("pool", 'p', "NAME", "Of this pool: workspaces, sandboxes, events"),
            ownFlag("tenant", 0, "NAME", "Of this tenant: workspaces, events"),
            ownFlag("label", 'l', "K=V", "With this label: workspaces", true),
            ownFlag("type", 0, "TYPE", "Of this type: events; in this phase: sandboxes"),
            ownFlag("resource", 0, "ID", "About this: events")};
}

void checkFilters(const Kind& kind, const Options& options, bool one) {
    for (const Flag& flag : filterFlags()) {
        if (!typed(options, flag.name)) continue;
        if (one) {
            throw UsageError("--" + flag.name + " chooses from a list",
                             "leave out the flag or the name");
        }
        if (findFilter(kind, flag.name) != nullptr) continue;
        throw UsageError("--" + flag.name + " does not apply to " + kind.many,
                         "see `hearth get --help`");
    }
}

std::vector<Json> itemsOf(Remote& remote, const Kind& kind, const Options& options) {
    std::vector<Json> items = remote.list(listTarget(remote, kind, options));
    const WantedFields wanted = wantedFields(remote, kind, options);
    std::erase_if(items, [&](const Json& item) { return !hasFields(item, wanted); });
    return items;
}

WantedFields wantedFields(Remote& remote, const Kind& kind, const Options& options) {
    WantedFields wanted;
    for (const Filter& filter : kFilters) {
        const std::string flag(filter.flag);
        if (filter.kind != kind.many || *filter.field == '\0' || !typed(options, flag)) continue;
        const std::string text = options.get(flag, "");
        wanted.emplace_back(filter.field, flag == "workspace" ? workspaceId(remote, text) : text);
    }
    return wanted;
}

bool hasFields(const Json& item, const WantedFields& wanted) {
    return std::ranges::all_of(
        wanted, [&](const auto& one) { return textAt(item, one.first.c_str()) == one.second; });
}

std::string nameOf(const Json& item) {
    if (const auto metadata = item.find("metadata");
        metadata != item.end() && metadata->is_object()) {
        return textAt(*metadata, "name");
    }
    if (item.contains("id")) return textAt(item, "id");
    return textAt(item, item.contains("quota") ? "tenant" : "path");
}

void showItems(const Invocation& call, const Kind& kind, const std::vector<Json>& items) {
    std::ostream& out = call.console.out;
    switch (listFormat(call.options)) {
        case OutputFormat::Json:
            out << jsonText(Json{{"items", items}}) << '\n';
            return;
        case OutputFormat::Yaml:
            out << yamlText(Json{{"items", items}});
            return;
        case OutputFormat::Name:
            for (const Json& item : items) out << printable(nameOf(item)) << '\n';
            return;
        default:
            break;
    }
    if (items.empty()) return call.console.note("no " + std::string(kind.many));
    const bool wide = listFormat(call.options) == OutputFormat::Wide;
    out << (wide ? kind.wide : kind.table)(items, SystemClock().wall());
}

void showList(const Invocation& call, const Kind& kind, Remote& remote) {
    showItems(call, kind, itemsOf(remote, kind, call.options));
    if (kind.many != std::string_view("workspaces") || remote.unanswered() == 0) return;
    call.console.note(std::to_string(remote.unanswered()) +
                      " more do not answer yet, after a restart of the server");
}

void showItem(const Invocation& call, const Json& item) {
    std::ostream& out = call.console.out;
    switch (listFormat(call.options)) {
        case OutputFormat::Json:
            out << jsonText(item) << '\n';
            return;
        case OutputFormat::Yaml:
            out << yamlText(item);
            return;
        case OutputFormat::Name:
            out << printable(nameOf(item)) << '\n';
            return;
        default:
            out << fieldList(item);
    }
}

}  // namespace hearth::cli
