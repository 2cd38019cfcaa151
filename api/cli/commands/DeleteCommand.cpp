#include <algorithm>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

int removeObjects(const Invocation& call) {
    const Kind* known = findKind(call.options.positional()[0]);
    const std::string kind = known != nullptr ? known->one : call.options.positional()[0];
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
            } catch (const RemoteError& e) {  // the others must be deleted all the same
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

}  // namespace hearth::cli
