#include "api/cli/completion/Completion.h"

namespace hearth::cli {
namespace {

int completion(const Invocation& call) {
    call.console.out << completionScript(call.options.positional()[0]) << std::flush;
    return kOk;
}

}  // namespace

Command makeCompletion() {
    return {
        {.name = "completion",
         .arguments = "bash|zsh|fish",
         .summary = "Print a script that makes a shell complete hearth's words.",
         .details = "  source <(hearth completion bash)      in ~/.bashrc\n"
                    "  source <(hearth completion zsh)       in ~/.zshrc, after compinit\n"
                    "  hearth completion fish > ~/.config/fish/completions/hearth.fish\n\n"
                    "Commands and flags come from the program itself; ids of workspaces, names of\n"
                    "pools and paths in workspaces from the server, if it answers in a second.",
         .flags = {},
         .least = 1,
         .most = 1,
         .operands = {"bash|zsh|fish"}},
        completion};
}

}  // namespace hearth::cli
