#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RunRequest.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

int removeObjects(const Invocation& call) {
    const std::string& kind = call.options.positional()[0];
    const std::vector<std::pair<std::string, std::string>> targets = {
        {"pool", "/v1/pools/"},
        {"workspace", "/v1/workspaces/"},
        {"sandbox", "/v1/sandboxes/"},
        {"execution", "/v1/executions/"},
        {"context", "/v1/contexts/"}};
    std::vector<std::string> words;
    for (const auto& [word, target] : targets) {
        words.push_back(word);
        if (kind != word) continue;
        Remote remote(call.options);
        int status = kOk;
        for (std::size_t i = 1; i < call.options.positional().size(); ++i) {
            const std::string& name = call.options.positional()[i];
            try {
                remote.send("DELETE", target + percentEncode(idOf(remote, kind, name)));
            } catch (const RemoteError& e) {  // the others are to go all the same
                call.console.error(e.what(), e.hint());
                status = std::max(status, exitStatusOf(e));
                continue;
            }
            call.console.out << kind << ' ' << name << ' '
                             << (kind == "execution" ? "killed" : "deleted") << '\n'
                             << std::flush;
        }
        return status;
    }
    throw unknownWord("there is no \"" + kind + "\" to delete", kind, words);
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

int open(const Invocation& call) {
    Json body = Json::object();
    if (const auto pool = call.options.get("pool")) body["pool"] = *pool;
    if (const auto image = call.options.get("image")) body["image"] = *image;
    if (const auto name = call.options.get("name")) body["name"] = *name;
    if (Json limits = limitsOf(call.options); !limits.empty()) body["limits"] = std::move(limits);
    if (Json env = variablesOf(call.options, "env"); !env.empty()) body["env"] = std::move(env);
    if (Json labels = variablesOf(call.options, "label"); !labels.empty())
        body["labels"] = std::move(labels);
    const auto seconds = [&](const char* flag, const char* key) {
        if (const auto value = call.options.duration(flag)) body[key] = value->count() / 1000;
    };
    seconds("idle-timeout", "idleTimeoutSeconds");
    seconds("max-lifetime", "maxLifetimeSeconds");
    const bool json = wantsJson(call.options);
    const Json workspace = Remote(call.options).send("POST", "/v1/workspaces", body).body;
    if (json) {
        call.console.out << jsonText(workspace) << '\n';
    } else {
        call.console.out << workspace.value("id", "") << '\n';
    }
    return kOk;
}

}  // namespace

Command makeDelete() {
    return {
        {.name = "delete",
         .arguments = "pool|workspace|sandbox|context|execution NAME…",
         .summary = "Delete pools, workspaces, sandboxes or contexts, or kill executions.",
         .details = "  hearth delete workspace ws_4f0c… ws_99ab…\n"
                    "  hearth delete pool python\n"
                    "  hearth delete execution ex_77d1…            kills it\n\n"
                    "Warm sandboxes of a deleted pool end at once; claimed ones live until their\n"
                    "workspace ends. Deleting a workspace ends its programs and deletes its files.",
         .flags = clientFlags(),
         .least = 2,
         .most = 1000,
         .operands = {"pool|workspace|sandbox|context|execution", "@kind"}},
        removeObjects};
}

Command makeDrain() {
    return {
        {.name = "drain",
         .arguments = "[POOL]",
         .summary = "End every sandbox of a pool, or of all pools, claimed ones included.",
         .details = "  hearth drain python      after its image was changed by hand\n"
                    "  hearth drain             before the machine goes down\n\n"
                    "A drained pool is filled again; without a name, pools stay empty until the\n"
                    "server is restarted.",
         .flags = clientFlags(),
         .least = 0,
         .most = 1,
         .operands = {"@pool"}},
        drain};
}

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

}  // namespace hearth::cli
