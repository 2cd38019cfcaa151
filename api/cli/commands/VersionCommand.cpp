#include "api/cli/commands/Commands.h"
#include "base/Version.h"

namespace hearth::cli {

Command makeVersion() {
    return {{.name = "version",
             .arguments = "",
             .summary = "Print the version of this program.",
             .details = "  hearth version                the same as hearth --version",
             .flags = {}},
            [](const Invocation& call) {
                call.console.out << "hearth " << kHearthVersion << '\n';
                return kOk;
            }};
}

}  // namespace hearth::cli
