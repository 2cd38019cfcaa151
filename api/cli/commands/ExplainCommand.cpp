#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kBar = 40;

std::string stageTable(const Json& timeline) {
    const double total = std::max(timeline.value("totalMs", 0.0), 1e-9);
    Table table({"STAGE", "MS", "SHARE", ""});
    table.align({Table::Align::Left, Table::Align::Right, Table::Align::Right});
    for (const Json& stage : timeline.at("stages")) {
        const double ms = stage.value("ms", 0.0);
        const double share = std::clamp(ms / total, 0.0, 1.0);
        const auto width = static_cast<std::size_t>(std::lround(share * kBar));
        table.add({textAt(stage, "stage"), numberText(ms, "%.3f"),
                   numberText(share * 100, "%.0f%%"), width == 0 ? " " : std::string(width, '#')});
    }
    return table.empty() ? "" : "\n" + table.text();
}

std::string circumstances(const Json& timeline) {
    std::string text;
    if (const Json& pool = timeline.at("poolThen"); pool.is_object()) {
        text += "\nthe pool then: " + std::to_string(pool.value("ready", 0)) + " ready, " +
                std::to_string(pool.value("claimed", 0)) + " claimed, " +
                std::to_string(pool.value("creating", 0)) + " being made, " +
                std::to_string(pool.value("waiting", 0)) + " claims in line";
        const Json& place = timeline.at("queuePlace");
        if (place.is_number()) text += ", it was number " + place.dump();
        text += "\n";
    }
    if (const Json& pressure = timeline.at("pressureThen"); pressure.is_object()) {
        text += "the machine then: some task waited for a processor in " +
                numberText(pressure.value("cpu", 0.0), "%.0f") +
                " % of ten seconds, for memory in " +
                numberText(pressure.value("memory", 0.0), "%.0f") + " %, for the disk in " +
                numberText(pressure.value("io", 0.0), "%.0f") + " %\n";
    }
    if (const std::string trace = textAt(timeline, "traceId"); !trace.empty()) {
        text += "trace: " + printable(trace) + "\n";
    }
    return text;
}

int explain(const Invocation& call) {
    const std::string& word = call.options.positional()[0];
    Remote remote(call.options);
    const bool execution = word.starts_with("ex_");
    const std::string target = execution
                                   ? "/v1/executions/" + percentEncode(executionId(remote, word))
                                   : "/v1/workspaces/" + percentEncode(workspaceId(remote, word));
    const Json timeline = remote.get(target + "/timeline");
    if (wantsJson(call.options)) {
        call.console.out << jsonText(timeline) << '\n';
        return kOk;
    }
    call.console.out << printable(textAt(timeline, "sentence")) << '\n'
                     << stageTable(timeline) << circumstances(timeline);
    return kOk;
}

}  // namespace

Command makeExplain() {
    return {
        {.name = "explain",
         .arguments = "WORKSPACE|EXECUTION",
         .summary = "Say why a claim or an execution took so long.",
         .details = "  hearth explain mine\n"
                    "  hearth explain ws_5f0c…      the claim of a workspace, also after its end\n"
                    "  hearth explain ex_8a6b…      an execution, so far while it runs\n\n"
                    "One sentence names the largest cause. Below it: where the time went, what\n"
                    "the pool was like when the claim came, and how busy the machine was.",
         .flags = withClientFlags(withOutputFlags({}, true)),
         .least = 1,
         .most = 1,
         .operands = {"@workspace"}},
        explain};
}

}  // namespace hearth::cli
