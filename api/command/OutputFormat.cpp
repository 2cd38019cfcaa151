#include "api/command/OutputFormat.h"

#include <array>
#include <string_view>
#include <utility>

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

std::vector<Flag> withListFlags(std::vector<Flag> flags) {
    flags.push_back(Flag{.name = "output",
                         .letter = 'o',
                         .value = "FORMAT",
                         .help = "table, wide, json, yaml or name",
                         .fallback = "table",
                         .choices = {"table|wide|json|yaml|name"}});
    flags.push_back(Flag{.name = "quiet",
                         .letter = 'q',
                         .help = "Only names; the same as --output name",
                         .environment = false});
    return flags;
}

OutputFormat listFormat(const Options& options) {
    if (options.on("quiet")) return OutputFormat::Name;
    constexpr std::array<std::pair<std::string_view, OutputFormat>, 5> kFormats = {{
        {"table", OutputFormat::Table},
        {"wide", OutputFormat::Wide},
        {"json", OutputFormat::Json},
        {"yaml", OutputFormat::Yaml},
        {"name", OutputFormat::Name},
    }};
    const std::string wanted = options.get("output", "table");
    for (const auto& [text, format] : kFormats) {
        if (text == wanted) return format;
    }
    throw UsageError("--output is \"" + wanted + "\"", "use table, wide, json, yaml or name");
}

}  // namespace hearth::cli
