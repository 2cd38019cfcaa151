#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/command/Yaml.h"
#include "api/kubernetes/Definitions.h"

namespace hearth::cli {

Command makeCrds() {
    return {{.name = "crds",
             .arguments = "",
             .summary = "Print the custom resource definitions that a cluster needs.",
             .details = "  hearth crds | kubectl apply -f -",
             .flags = {}},
            [](const Invocation& call) {
                call.console.out << yamlText(kubernetes::sandboxPoolDefinition()) << "---\n"
                                 << yamlText(kubernetes::workspaceDefinition());
                return kOk;
            }};
}

}  // namespace hearth::cli
