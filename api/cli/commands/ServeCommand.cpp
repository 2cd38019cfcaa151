#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/command/OutputFormat.h"
#include "api/config/Settings.h"
#include "api/serve/HearthServer.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

int serve(const Invocation& call) {
    const ServeConfig config = loadServeConfig(call.options);
    std::error_code missing;
    if (std::filesystem::exists(*config.data_dir, missing) &&
        !std::filesystem::is_directory(*config.data_dir, missing)) {
        throw UsageError("the data directory " + *config.data_dir + " is not a directory",
                         "name a directory with --data-dir");
    }
    return program::serve(config);
}

int config(const Invocation& call) {
    if (!call.options.positional().empty()) {
        const std::string& word = call.options.positional()[0];
        if (word != "reference") {
            throw unknownWord("config has no \"" + word + "\"", word, {"reference"});
        }
        call.console.out << configReference();
        return kOk;
    }
    const bool json = wantsJson(call.options);
    const ServeConfig effective = loadServeConfig(call.options);
    call.console.out << (json ? jsonText(configDocument(effective)) + "\n"
                              : configTable(effective));
    return kOk;
}

}  // namespace

Command makeServe() {
    return {
        {.name = "serve",
         .arguments = "",
         .summary = "Serve REST and MCP, and keep the pools warm.",
         .details = "  hearth serve --pools sandbox_images/python/pool.yaml\n"
                    "  hearth serve --config /etc/hearth.yaml --log-level debug\n"
                    "  HEARTH_DATA_DIR=/srv/hearth hearth serve\n\n"
                    "Flags override the environment, which overrides the YAML file of --config;\n"
                    "`hearth config` shows each and where it came from. Tokens can be given in\n"
                    "the file only. An address other machines can reach needs a token.",
         .flags = serveFlags()},
        serve};
}

Command makeConfig() {
    std::vector<Flag> flags = withOutputFlags(serveFlags());
    return {{.name = "config",
             .arguments = "[reference]",
             .summary = "Print the settings of `hearth serve`, and where each value came from.",
             .details = "  hearth config\n"
                        "  hearth config --config hearth.yaml -o json\n"
                        "  hearth config reference          all settings, as a page of Markdown",
             .flags = std::move(flags),
             .most = 1,
             .operands = {"reference"}},
            config};
}

}  // namespace hearth::cli
