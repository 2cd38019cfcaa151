#include <filesystem>

#include "api/cli/commands/Commands.h"
#include "api/serve/process/ProgramPath.h"
#include "pool/isolation/AgentFolder.h"

namespace hearth::cli {

Command makeAgentFolder() {
    return {
        {.name = "agent-folder",
         .arguments = "DIRECTORY",
         .summary = "Write the folder that an image needs at /hearth to bring the agent into Pods.",
         .details = "  hearth agent-folder image/hearth    then: FROM scratch, COPY hearth /hearth",
         .flags = {},
         .least = 1,
         .most = 1,
         .operands = {"@dir"}},
        [](const Invocation& call) {
            const std::filesystem::path target = call.options.positional().front();
            if (std::filesystem::exists(target)) {
                throw UsageError(target.string() + " is there already");
            }
            const std::filesystem::path parent = std::filesystem::absolute(target).parent_path();
            std::filesystem::create_directories(parent);
            std::filesystem::rename(
                pool::launcher::installInside(parent.string(), besideProgram("hearth-agent"),
                                              pool::launcher::seccomp::AgentIdentity::Tenant),
                target);
            call.console.out << target.string() << "\n";
            return kOk;
        }};
}

}  // namespace hearth::cli
