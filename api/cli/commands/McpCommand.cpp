#include <unistd.h>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/mcp/seeds/Seeds.h"
#include "api/mcp/stdio/StdioBridge.h"

namespace hearth::cli {
namespace {

int bridge(const Invocation& call) {
    mcp::BridgeOptions options;
    options.url = call.options.get("url", options.url);
    options.token = call.options.get("token", "");
    options.client = clientOptions(call.options);
    options.root = call.options.get("root", "");
    options.compat = call.options.get("compat", "");
    if (!options.compat.empty() && !mcp::seeds::isSeed(options.compat)) {
        throw UsageError("--compat is \"" + options.compat + "\"", "use s0, s1, s2 or s3");
    }
    metrics::Log log(STDERR_FILENO, metrics::LogLevel::Warn);
    return mcp::StdioBridge(options, STDIN_FILENO, STDOUT_FILENO, log).run();
}

}  // namespace

Command makeMcp() {
    return {
        {.name = "mcp",
         .arguments = "",
         .summary = "Speak MCP on standard input and output, for clients that start a program.",
         .details =
             "  hearth mcp                      no files of this machine\n"
             "  hearth mcp --root ~/project     also file_put and file_get beneath it\n\n"
             "A bridge to the server at --url. With --root it also reads and writes the user's\n"
             "own files beneath that directory, so the model controls them. `hearth\n"
             "mcp-config` prints what a client needs.",
         .flags = withClientFlags({Flag{.name = "root",
                                        .value = "DIR",
                                        .help = "The directory that local files may be in",
                                        .fallback = "no local files"},
                                   Flag{.name = "compat",
                                        .value = "SEED",
                                        .help = "Offer an earlier system's tools, s0 to s3, "
                                                "instead of Hearth's"}})},
        bridge};
}

}  // namespace hearth::cli
