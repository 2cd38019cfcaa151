#include "api/cli/commands/Commands.h"

namespace hearth::cli {

Command makeVersion() {
    return {{.name = "version",
             .arguments = "",
             .summary = "Print the version of this program.",
             .details = "  hearth version                the same as hearth --version",
             .flags = {}},
            [](const Invocation& call) {
                call.console.out << "hearth " << HEARTH_VERSION << '\n';
                return kOk;
            }};
}

}  // namespace hearth::cli
