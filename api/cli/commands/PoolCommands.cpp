#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/config/TextFile.h"
#include "base/http/Url.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxManifest = 1U << 20U;

/// The pool's present state; null if there is none.
Json findPool(Remote& remote, const std::string& target) {
    try {
        return remote.get(target);
    } catch (const RemoteError& e) {
        if (e.status() != 404) throw;
        return nullptr;
    }
}

/// One line for each field that differs: `  ~ /warm/min: 1 -> 2`.
std::string differenceText(const Json& before, const Json& after) {
    std::string text;
    for (const Json& step : Json::diff(before, after)) {
        const std::string path = textAt(step, "path");
        const std::string what = textAt(step, "op");
        const auto old = [&] { return dumpJson(before.at(Json::json_pointer(path))); };
        if (what == "add") {
            text += "  + " + path + ": " + dumpJson(step.at("value"));
        } else if (what == "remove") {
            text += "  - " + path + ": " + old();
        } else {
            text += "  ~ " + path + ": " + old() + " -> " + dumpJson(step.at("value"));
        }
        text += "\n";
    }
    return printableLines(text);
}

int apply(const Invocation& call) {
    std::vector<std::string> files = call.options.all("file");
    files.insert(files.end(), call.options.positional().begin(), call.options.positional().end());
    if (files.empty()) throw UsageError("nothing to apply", "hearth apply -f pools.yaml");
    std::vector<controller::Pool> pools;  // all files are read before the first pool changes
    for (const std::string& file : files) {
        for (auto& pool : controller::parsePoolYaml(readTextFile(file, kMaxManifest), file)) {
            pools.push_back(std::move(pool));
        }
    }
    if (pools.empty())
        throw UsageError("the files declare no pool", "see `hearth get pools -o json`");
    const bool dry = call.options.on("dry-run");
    Remote remote(call.options);
    for (const controller::Pool& pool : pools) {
        const std::string target = "/v1/pools/" + percentEncode(pool.name);
        const Json before = findPool(remote, target);
        const Json wanted = controller::poolDocument(pool.name, pool.spec);
        // Both sides are written by the same rules, so that only real differences show.
        const std::string difference =
            before.is_null() ? "" : differenceText(before.at("spec"), wanted.at("spec"));
        if (!dry) remote.send("PUT", target, wanted);
        const char* verb = before.is_null()     ? "created"
                           : difference.empty() ? "unchanged"
                                                : "configured";
        call.console.out << "pool " << pool.name << ' ' << verb << (dry ? " (dry run)" : "") << '\n'
                         << difference << std::flush;
    }
    return kOk;
}

int scale(const Invocation& call) {
    const std::vector<std::string>& words = call.options.positional();
    const auto count = [](const std::string& text) {
        if (text.empty() || text.size() > 6 ||
            text.find_first_not_of("0123456789") != std::string::npos) {
            throw UsageError("\"" + text + "\" is not a number of sandboxes",
                             "hearth scale POOL MIN [MAX]");
        }
        return std::stoi(text);
    };
    const int least = count(words[1]);
    const bool bounded = words.size() > 2;
    const int most = bounded ? count(words[2]) : least;
    Remote remote(call.options);
    const std::string target = "/v1/pools/" + percentEncode(words[0]);
    Json warm{{"min", least}};
    const int before = remote.get(target).at("spec").at("warm").value("max", 0);
    if (bounded || before < least) warm["max"] = most;
    const Json pool = remote.send("PATCH", target, {{"spec", {{"warm", warm}}}}).body;
    const Json& now = pool.at("spec").at("warm");
    call.console.out << "pool " << printable(words[0]) << " scaled: min " << now.at("min")
                     << ", max " << now.at("max");
    if (!bounded && before < least) call.console.out << ", raised from " << before;
    call.console.out << '\n';
    return kOk;
}

int drain(const Invocation& call) {
    Remote remote(call.options);
    const bool one = !call.options.positional().empty();
    const std::string target =
        one ? "/v1/pools/" + percentEncode(call.options.positional()[0]) + "/drain"
            : std::string("/v1/drain");
    const Answer answer = remote.send("POST", target);
    std::string ended;
    if (answer.body.is_object() && answer.body.contains("ended")) {
        ended = ": " + answer.body["ended"].dump() + " sandboxes ended";
    }
    call.console.out << (one ? "pool " + call.options.positional()[0] : std::string("all pools"))
                     << " drained" << ended << '\n';
    return kOk;
}

int undrain(const Invocation& call) {
    Remote(call.options).send("POST", "/v1/undrain");
    call.console.out << "all pools are filled again\n";
    return kOk;
}

}  // namespace

Command makeApply() {
    return {{.name = "apply",
             .arguments = "[FILE…]",
             .summary = "Create or change pools to match the manifests.",
             .details = "  hearth apply -f pool.yaml\n"
                        "  hearth apply --dry-run -f pool.yaml\n"
                        "  generate-pools | hearth apply -f -\n\n"
                        "Files are YAML of one or several documents; - is standard input. Nothing\n"
                        "changes unless all of them are valid. Each field that changes is printed.",
             .flags = withClientFlags({Flag{.name = "file",
                                            .letter = 'f',
                                            .value = "FILE",
                                            .help = "A manifest",
                                            .repeats = true,
                                            .environment = false},
                                       Flag{.name = "dry-run",
                                            .help = "Only print what would change",
                                            .environment = false}}),
             .least = 0,
             .most = 1000,
             .operands = {"@file"}},
            apply};
}

Command makeScale() {
    return {{.name = "scale",
             .arguments = "POOL MIN [MAX]",
             .summary = "Change how many sandboxes a pool keeps.",
             .details =
                 "  hearth scale python 4         four are kept warm; MAX is raised if it is less\n"
                 "  hearth scale python 4 20      and never more than twenty warm ones",
             .flags = clientFlags(),
             .least = 2,
             .most = 3,
             .operands = {"@pool", "", ""}},
            scale};
}

Command makeDrain() {
    return {{.name = "drain",
             .arguments = "[POOL]",
             .summary = "End every sandbox of a pool, or of all pools, claimed ones included.",
             .details = "  hearth drain python      after its image was changed by hand\n"
                        "  hearth drain             before the machine goes down\n\n"
                        "A drained pool is filled again; without a name, pools stay empty until\n"
                        "`hearth undrain` or the server's next start.",
             .flags = clientFlags(),
             .least = 0,
             .most = 1,
             .operands = {"@pool"}},
            drain};
}

Command makeUndrain() {
    return {{.name = "undrain",
             .arguments = "",
             .summary = "Fill all pools again after `hearth drain`, and serve claims.",
             .details = "  hearth undrain           the machine did not go down after all",
             .flags = clientFlags()},
            undrain};
}

}  // namespace hearth::cli
