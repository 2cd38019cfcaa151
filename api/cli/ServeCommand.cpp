#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/cli/Command.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

int serve(const Invocation& call) {
    if (!call.program.serve) throw Error(ErrorCode::Unsupported, "this build has no server");
    const ServeConfig config = loadServeConfig(call.options);
    std::error_code missing;
    if (std::filesystem::exists(*config.data_dir, missing) &&
        !std::filesystem::is_directory(*config.data_dir, missing)) {
        throw UsageError("the data directory " + *config.data_dir + " is not a directory",
                         "name a directory with --data-dir");
    }
    return call.program.serve(config);
}

int config(const Invocation& call) {
    const std::string format = call.options.get("output", "table");
    if (format != "table" && format != "json") {
        throw UsageError("--output is \"" + format + "\"", "use table or json");
    }
    const ServeConfig effective = loadServeConfig(call.options);
    call.console.out << (format == "json" ? configDocument(effective).dump(2) + "\n"
                                          : configTable(effective));
    return kOk;
}

}  // namespace

Command makeServe() {
    return {
        {.name = "serve",
         .arguments = "",
         .summary = "Serve REST and MCP, and keep the pools warm.",
         .details = "Settings come from flags over environment over the YAML file of --config;\n"
                    "`hearth config` shows each and where it came from. Tokens can be given in\n"
                    "the file only. An address other machines can reach needs a token.",
         .flags = serveFlags()},
        serve};
}

Command makeConfig() {
    std::vector<Flag> flags = serveFlags();
    flags.push_back(Flag{.name = "output",
                         .letter = 'o',
                         .value = "FORMAT",
                         .help = "table or json",
                         .fallback = "table",
                         .environment = false});
    return {{.name = "config",
             .arguments = "",
             .summary = "Print what `hearth serve` would run by, and where each value came from.",
             .details = "",
             .flags = std::move(flags)},
            config};
}

}  // namespace hearth::cli
