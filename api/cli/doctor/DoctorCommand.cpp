#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/cli/doctor/CdiChecks.h"
#include "api/cli/doctor/Doctor.h"
#include "api/cli/doctor/GpuChecks.h"
#include "api/cli/doctor/HostChecks.h"
#include "api/cli/doctor/KubernetesChecks.h"
#include "api/cli/doctor/StateChecks.h"
#include "api/cli/doctor/ToolChecks.h"
#include "api/command/OutputFormat.h"
#include "api/serve/OfflineState.h"
#include "api/serve/runtimes/Runtimes.h"

namespace hearth::cli {
namespace {

const char* levelName(Level level) {
    switch (level) {
        case Level::Ok:
            return "ok";
        case Level::Warn:
            return "warn";
        case Level::Fail:
            return "fail";
    }
    return "fail";
}

Colour levelColour(Level level) {
    if (level == Level::Ok) return Colour::Green;
    return level == Level::Warn ? Colour::Yellow : Colour::Red;
}

void print(const Console& console, const Findings& findings) {
    std::size_t widest = 0;
    for (const Finding& f : findings) widest = std::max(widest, f.name.size());
    for (const Finding& f : findings) {
        std::string tag = "[" + std::string(levelName(f.level)) + "]";
        tag.resize(6, ' ');
        std::string name = printable(f.name);
        name.resize(widest, ' ');
        console.out << coloured(tag, levelColour(f.level), console.out_colour) << ' ' << name
                    << "  " << printable(f.message) << '\n';
        if (!f.fix.empty()) {
            console.out << std::string(widest + 9, ' ') << "fix: " << printable(f.fix) << '\n';
        }
    }
}

/// Checks that the default pool exists, as far as possible without a server: in the data directory,
/// or in the manifests that the server would read.
std::optional<Finding> checkDefaultPool(const ServeConfig& config) {
    const std::string& wanted = *config.default_pool;
    if (wanted.empty()) return std::nullopt;
    Finding finding{Level::Ok, "default pool", wanted + " is declared", ""};
    try {
        std::string names;
        for (const auto& pools :
             {program::declaredInFiles(config.pools), program::declaredInFiles(config.pools_once),
              program::declaredPools(*config.data_dir)}) {
            for (const controller::Pool& pool : pools) {
                if (pool.name == wanted) return finding;
                names += (names.empty() ? "" : ", ") + pool.name;
            }
        }
        finding.message = wanted + " is not declared; " +
                          (names.empty() ? "no pool is" : "declared pools: " + names);
        finding.fix =
            "declare it with --pools or hearth apply -f, or name another with "
            "--default-pool";
    } catch (const std::exception& e) {
        finding.message = std::string("cannot find out whether it is declared: ") + e.what();
        finding.fix = "run it as root";
    }
    finding.level = Level::Warn;
    return finding;
}

int doctor(const Invocation& call) {
    const bool json = wantsJson(call.options);
    const ServeConfig config = loadServeConfig(call.options);
    const program::RuntimeDecision runtime = program::decideRuntime(config);
    const std::string name = runtimeName(runtime.choice);
    Findings findings = {{Level::Ok, "runtime", name + ": " + runtime.reason, ""}};
    for (Finding& f : checkTools(config, runtime.factory->needsRoot()))
        findings.push_back(std::move(f));
    // A server whose sandboxes are Pods needs nothing of its machine.
    const bool pods = runtime.choice == RuntimeChoice::Kubernetes;
    if (pods || call.options.on("kubernetes")) {
        for (Finding& f : checkKubernetes(config)) findings.push_back(std::move(f));
    }
    if (!pods) {
        for (Finding& f : HostChecks().all()) findings.push_back(std::move(f));
        findings.push_back(checkGpus(config));
    }
    for (Finding& f : checkServer(config)) findings.push_back(std::move(f));
    if (const auto url = call.options.variable("HEARTH_URL"); url && !url->empty()) {
        const std::string authority = call.options.variable("HEARTH_CA_FILE").value_or("");
        findings.push_back(checkClientUrl(*url, authority));
    }
    for (Finding& f : checkState(config)) findings.push_back(std::move(f));
    if (auto pool = checkDefaultPool(config)) findings.push_back(std::move(*pool));
    if (runtime.choice == RuntimeChoice::Oci)
        findings.push_back(checkCdi({.paths = *config.cdi_folders}));
    if (!pods) findings.push_back(checkDocker(runtime.choice == RuntimeChoice::Docker));
    if (runtime.choice == RuntimeChoice::Docker && findings.back().level == Level::Ok) {
        findings.push_back(checkDockerAgent(config));
    }
    const auto count = [&](Level level) {
        return std::ranges::count(findings, level, &Finding::level);
    };
    const auto failed = count(Level::Fail);
    if (json) {
        Json checks = Json::array();
        for (const Finding& f : findings) {
            checks.push_back({{"level", levelName(f.level)},
                              {"name", f.name},
                              {"message", f.message},
                              {"fix", f.fix.empty() ? Json(nullptr) : Json(f.fix)}});
        }
        call.console.out << jsonText(Json{{"ok", failed == 0}, {"checks", checks}}) << '\n';
    } else {
        print(call.console, findings);
        call.console.out << '\n'
                         << count(Level::Ok) << " ok, " << count(Level::Warn) << " warnings, "
                         << failed << " failed\n";
    }
    return failed == 0 ? kOk : kFailure;
}

}  // namespace

Command makeDoctor() {
    std::vector<Flag> flags = withOutputFlags(serveFlags(), true);
    flags.push_back(ownFlag("kubernetes", 0, "", "Check the cluster too, whatever the runtime is"));
    return {
        {.name = "doctor",
         .arguments = "",
         .summary = "Check everything that the server needs, and say how to fix what is missing.",
         .details =
             "  hearth doctor                         before the first start\n"
             "  hearth doctor --config hearth.yaml    what `serve` would use\n"
             "  hearth doctor --kubernetes            the cluster of --kubeconfig too\n\n"
             "Takes the settings of `serve`, so it checks what the server would use, and the\n"
             "server that HEARTH_URL names, if it names one. Exits with 1 when something has\n"
             "failed; warnings do not count.",
         .flags = std::move(flags)},
        doctor};
}

}  // namespace hearth::cli
