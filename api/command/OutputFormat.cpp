#include "api/command/OutputFormat.h"

namespace hearth::cli {

std::vector<Flag> outputFlags(bool short_form) {
    std::vector<Flag> flags{Flag{.name = "output",
                                 .letter = 'o',
                                 .value = "FORMAT",
                                 .help = "table or json",
                                 .fallback = "table",
                                 .choices = {"table|json"}}};
    if (short_form) flags.push_back(Flag{.name = "json", .help = "The same as --output json"});
    return flags;
}

std::vector<Flag> withOutputFlags(std::vector<Flag> flags, bool short_form) {
    for (Flag& flag : outputFlags(short_form)) flags.push_back(std::move(flag));
    return flags;
}

bool wantsJson(const Options& options) {
    const std::string format = options.get("output", "table");
    if (format != "table" && format != "json") {
        throw UsageError("--output is \"" + format + "\"", "use table or json");
    }
    return format == "json" || options.on("json");
}

}  // namespace hearth::cli
