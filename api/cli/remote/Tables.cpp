#include "api/cli/remote/Tables.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "api/command/Console.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

/// The text at a path of keys; "" if absent or null.
std::string at(const Json& item, std::initializer_list<const char*> path) {
    const Json* node = &item;
    for (const char* key : path) {
        if (!node->is_object()) return {};
        const auto it = node->find(key);
        if (it == node->end()) return {};
        node = &*it;
    }
    if (node->is_null()) return {};
    return node->is_string() ? node->get<std::string>() : dumpJson(*node);
}

std::string seconds(std::int64_t value) {
    if (value < 0) value = -value;
    if (value < 120) return std::to_string(value) + "s";
    if (value < 7'200) return std::to_string(value / 60) + "m";
    if (value < 172'800) return std::to_string(value / 3600) + "h";
    return std::to_string(value / 86400) + "d";
}

std::string milliseconds(const std::string& text) {
    if (text.empty()) return {};
    char out[32];
    std::snprintf(out, sizeof(out), "%.1fms", std::strtod(text.c_str(), nullptr));
    return out;
}

std::string size(const std::string& bytes) {
    return bytes.empty() ? bytes : formatSize(std::strtod(bytes.c_str(), nullptr));
}

/// Texts of several lines, with their paths: a cell cannot show them.
using LongTexts = std::vector<std::pair<std::string, std::string>>;

void flatten(const Json& node, const std::string& path, Table& table, LongTexts& texts) {
    if (node.is_object() && !node.empty()) {
        for (const auto& [key, value] : node.items()) {
            std::string below = path;
            if (!below.empty()) below += '.';
            flatten(value, below += key, table, texts);
        }
        return;
    }
    if (node.is_array() && !node.empty() && node[0].is_object()) {
        for (std::size_t i = 0; i < node.size(); ++i) {
            flatten(node[i], path + "[" + std::to_string(i) + "]", table, texts);
        }
        return;
    }
    std::string text = node.is_string() ? node.get<std::string>() : dumpJson(node);
    if (node.is_null() || (node.is_structured() && node.empty())) text.clear();
    // A cell can show one line with its line break.
    if (const std::size_t end = text.find('\n'); end != std::string::npos) {
        if (end + 1 < text.size()) {
            texts.emplace_back(path, text);
            return;
        }
        text.pop_back();
    }
    table.add({path, text});
}

}  // namespace

std::optional<std::int64_t> secondsSince(const std::string& time, WallTime now) {
    std::tm parts{};
    if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon,
                    &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6) {
        return std::nullopt;
    }
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    const std::int64_t then = ::timegm(&parts);
    return toUnixMillis(now) / 1000 - then;
}

std::string age(const std::string& time, WallTime now) {
    const auto since = secondsSince(time, now);
    return since ? seconds(*since) : "-";
}

/// Drained before Degraded before Installing before Ready; empty if a server reports no
/// conditions.
std::string poolStatus(const Json& pool) {
    const auto status = pool.find("status");
    if (status == pool.end() || !status->is_object() || !status->contains("conditions")) return {};
    std::string ready;
    bool installing = false;
    bool degraded = false;
    for (const Json& condition : (*status)["conditions"]) {
        const std::string type = at(condition, {"type"});
        const bool holds = at(condition, {"status"}) == "True";
        std::string reason = at(condition, {"reason"});
        if (reason == "Drained") return reason;
        degraded = degraded || (type == "Degraded" && holds);
        if (type == "Ready") ready = holds ? "Ready" : "Filling";
        installing = installing || reason == "InstallingPackages";
    }
    if (degraded) return "Degraded";
    return installing ? "Installing" : ready;
}

/// The reason that it is degraded, or else what its conditions say is missing.
std::string poolWhy(const Json& pool) {
    constexpr std::size_t kMost = 100;
    const auto status = pool.find("status");
    if (status == pool.end() || !status->is_object() || !status->contains("conditions")) return {};
    std::string degraded;
    std::string lacking;
    constexpr std::array kBadWhenTrue{"Degraded", "ScalingLimited"};
    constexpr std::array kOfSize{"Ready", "Progressing"};
    const auto among = [](const auto& types, const std::string& type) {
        return std::find(types.begin(), types.end(), type) != types.end();
    };
    for (const Json& condition : (*status)["conditions"]) {
        const std::string type = at(condition, {"type"});
        const bool holds = at(condition, {"status"}) == "True";
        const std::string message = at(condition, {"message"});
        if (type == "Degraded" && holds) degraded = message;
        const bool unpacks = at(condition, {"reason"}) == "UnpackingImage";
        const bool bad = unpacks || (!among(kOfSize, type) && holds == among(kBadWhenTrue, type));
        if (!bad || message.empty()) continue;
        lacking += (lacking.empty() ? "" : "; ") + message;
    }
    std::string why = degraded.empty() ? lacking : degraded;
    std::replace(why.begin(), why.end(), '\n', ' ');
    if (why.size() <= kMost) return why;
    return toUtf8(why.substr(0, kMost)) + "…";
}

std::string poolTable(const std::vector<Json>& items, WallTime now) {
    Table table({"NAME", "STATUS", "READY", "DESIRED", "CLAIMED", "CREATING", "FAILED", "WAITING",
                 "MIN", "MAX", "IMAGE", "AGE", "WHY"});
    using enum Table::Align;
    table.align({Left, Left, Right, Right, Right, Right, Right, Right, Right, Right});
    for (const Json& p : items) {
        table.add({at(p, {"metadata", "name"}), poolStatus(p), at(p, {"status", "ready"}),
                   at(p, {"status", "desired"}), at(p, {"status", "claimed"}),
                   at(p, {"status", "creating"}), at(p, {"status", "failed"}),
                   at(p, {"status", "waiting"}), at(p, {"spec", "warm", "min"}),
                   at(p, {"spec", "warm", "max"}), at(p, {"spec", "template", "image"}),
                   age(at(p, {"metadata", "createdAt"}), now), poolWhy(p)});
    }
    return table.text();
}

std::string workspaceTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "NAME", "POOL", "PHASE", "TENANT", "AGE", "ENDS IDLE IN", "ENDS IN"});
    for (const Json& w : items) {
        table.add({at(w, {"id"}), at(w, {"name"}), at(w, {"pool"}), at(w, {"phase"}),
                   at(w, {"tenant"}), age(at(w, {"createdAt"}), now),
                   age(at(w, {"idleExpiresAt"}), now), age(at(w, {"expiresAt"}), now)});
    }
    return table.text();
}

std::string wideWorkspaceTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "NAME", "POOL", "PHASE", "TENANT", "AGE", "ENDS IDLE IN", "ENDS IN",
                 "SANDBOX", "NETWORK", "LABELS"});
    for (const Json& w : items) {
        std::string labels;
        if (const auto all = w.find("labels"); all != w.end() && all->is_object()) {
            for (const auto& [key, value] : all->items()) {
                labels += (labels.empty() ? "" : ",") + key + "=" + at(*all, {key.c_str()});
            }
        }
        table.add({at(w, {"id"}), at(w, {"name"}), at(w, {"pool"}), at(w, {"phase"}),
                   at(w, {"tenant"}), age(at(w, {"createdAt"}), now),
                   age(at(w, {"idleExpiresAt"}), now), age(at(w, {"expiresAt"}), now),
                   at(w, {"sandboxId"}), at(w, {"network"}), labels});
    }
    return table.text();
}

std::string sandboxTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "POOL", "PHASE", "WORKSPACE", "IMAGE", "RUNTIME", "AGE"});
    for (const Json& s : items) {
        table.add({at(s, {"id"}), at(s, {"pool"}), at(s, {"phase"}), at(s, {"workspaceId"}),
                   at(s, {"image"}), at(s, {"runtime"}), age(at(s, {"createdAt"}), now)});
    }
    return table.text();
}

std::string executionTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "STATUS", "EXIT", "LANGUAGE", "TOOK", "STARTED"});
    using enum Table::Align;
    table.align({Left, Left, Right, Left, Right});
    for (const Json& e : items) {
        const std::string started = age(at(e, {"startedAt"}), now);
        table.add({at(e, {"id"}), at(e, {"status"}), at(e, {"exitCode"}), at(e, {"language"}),
                   milliseconds(at(e, {"durationMs"})), started == "-" ? "" : started + " ago"});
    }
    return table.text();
}

std::string wideExecutionTable(const std::vector<Json>& items, WallTime now) {
    Table table(
        {"ID", "WORKSPACE", "STATUS", "EXIT", "LANGUAGE", "TOOK", "STARTED", "CPU", "PEAK MEMORY"});
    using enum Table::Align;
    table.align({Left, Left, Left, Right, Left, Right, Left, Right, Right});
    for (const Json& e : items) {
        const std::string started = age(at(e, {"startedAt"}), now);
        // An execution's use is unknown until it ends.
        const bool ended = at(e, {"status"}) != "running";
        table.add({at(e, {"id"}), at(e, {"workspaceId"}), at(e, {"status"}), at(e, {"exitCode"}),
                   at(e, {"language"}), milliseconds(at(e, {"durationMs"})),
                   started == "-" ? "" : started + " ago",
                   ended ? milliseconds(at(e, {"usage", "cpuMs"})) : "",
                   ended ? size(at(e, {"usage", "peakMemoryBytes"})) : ""});
    }
    return table.text();
}

std::string contextTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "LANGUAGE", "NAME", "RUNS", "CREATED"});
    for (const Json& c : items) {
        const std::string created = age(at(c, {"createdAt"}), now);
        table.add({at(c, {"id"}), at(c, {"language"}), at(c, {"name"}), at(c, {"executionId"}),
                   created == "-" ? "" : created + " ago"});
    }
    return table.text();
}

std::string fileTable(const std::vector<Json>& items, WallTime now) {
    Table table({"MODE", "SIZE", "AGE", "PATH"});
    using enum Table::Align;
    table.align({Left, Right, Right});
    for (const Json& f : items) {
        std::string path = at(f, {"path"});
        if (at(f, {"type"}) == "directory") path += "/";
        if (!at(f, {"target"}).empty()) path += " -> " + at(f, {"target"});
        table.add({at(f, {"mode"}), at(f, {"size"}), age(at(f, {"modifiedAt"}), now), path});
    }
    return table.text();
}

std::string eventTable(const std::vector<Json>& items, WallTime now) {
    Table table({"AGE", "TYPE", "RESOURCE", "POOL", "REASON", "MESSAGE"});
    for (const Json& e : items) {
        table.add({age(at(e, {"time"}), now), at(e, {"type"}), at(e, {"resource"}), at(e, {"pool"}),
                   at(e, {"reason"}), at(e, {"message"})});
    }
    return table.text();
}

std::string quotaTable(const std::vector<Json>& items, WallTime /*now*/) {
    Table table({"TENANT", "SOURCE", "WORKSPACES", "CPU", "MEMORY", "GPUS", "EXECUTIONS",
                 "CLAIMS/S", "WEIGHT"});
    for (const Json& q : items) {
        const auto pair = [&](const char* use, const char* limit) {
            const std::string most = at(q, {"quota", limit});
            return at(q, {"use", use}) + "/" + (most.empty() ? "-" : most);
        };
        const auto bytes = q.find("use");
        const std::uint64_t memory = bytes == q.end() ? 0 : bytes->value("memoryBytes", 0ULL);
        const std::string most = at(q, {"quota", "memory"});
        table.add({at(q, {"tenant"}), at(q, {"source"}), pair("workspaces", "workspaces"),
                   pair("cpu", "cpu"), formatBytes(memory) + "/" + (most.empty() ? "-" : most),
                   pair("gpus", "gpus"), pair("executions", "executions"),
                   at(q, {"quota", "claimsPerSecond"}), at(q, {"quota", "weight"})});
    }
    return table.text();
}

std::string gpuTable(const std::vector<Json>& items, WallTime /*now*/) {
    Table table({"UUID", "PRODUCT", "MEMORY", "STATE", "POOL", "WORKSPACE", "REASON"});
    for (const Json& g : items) {
        std::string pools;
        std::string workspaces;
        for (const Json& holder : g.value("holders", Json::array())) {
            const auto add = [](std::string& list, const std::string& one) {
                if (!one.empty()) list += (list.empty() ? "" : ",") + one;
            };
            add(pools, at(holder, {"pool"}));
            add(workspaces, at(holder, {"workspaceId"}));
        }
        const std::string profile = at(g, {"profile"});
        table.add({at(g, {"uuid"}), at(g, {"product"}) + (profile.empty() ? "" : " " + profile),
                   size(at(g, {"memoryBytes"})), at(g, {"state"}), pools, workspaces,
                   at(g, {"reason"})});
    }
    return table.text();
}

std::string tokenTable(const std::vector<Json>& items, WallTime now) {
    Table table({"ID", "NAME", "TENANT", "ROLE", "AGE", "ENDS IN", "SOURCE"});
    for (const Json& t : items) {
        table.add({at(t, {"id"}), at(t, {"name"}), at(t, {"tenant"}), at(t, {"role"}),
                   age(at(t, {"createdAt"}), now), age(at(t, {"expiresAt"}), now),
                   at(t, {"source"})});
    }
    return table.text();
}

std::string packageTable(const Json& packages) {
    Table table({"PACKAGE", "STATE", "VERSION", "WHY"});
    for (const auto& [name, p] : packages.items()) {
        table.add({name, at(p, {"state"}), at(p, {"version"}), at(p, {"error"})});
    }
    return table.text();
}

std::string eventLine(const Json& event) {
    std::string line;
    for (const char* key : {"time", "type", "resource", "pool", "reason", "message"}) {
        const std::string text = at(event, {key});
        if (!text.empty()) line += (line.empty() ? "" : "  ") + text;
    }
    return printable(line);
}

std::string fieldList(const Json& object) {
    Table table({"FIELD", "VALUE"});
    LongTexts texts;
    flatten(object, "", table, texts);
    std::string all = table.text();
    for (const auto& [path, text] : texts) {
        all += "\n" + printable(path) + ":\n" + printableLines(text);
        if (!text.ends_with('\n')) all += '\n';
    }
    return all;
}

std::string numberText(double value, const char* form) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), form, value);
    return text.data();
}

}  // namespace hearth::cli
