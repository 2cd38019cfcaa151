#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "metrics/Log.h"

namespace hearth::cli {
namespace {

int logLevel(const Invocation& call) {
    Remote remote(call.options);
    const std::vector<std::string>& words = call.options.positional();
    Json answer;
    if (words.empty()) {
        answer = remote.get("/v1/log-level");
    } else {
        if (!metrics::kLogLevels.find(words[0])) {
            throw UsageError("\"" + words[0] + "\" is not a level", "debug, info, warn or error");
        }
        answer = remote.send("PUT", "/v1/log-level", {{"level", words[0]}}).body;
    }
    call.console.out << printable(textAt(answer, "level")) << '\n';
    return kOk;
}

}  // namespace

Command makeLogLevel() {
    return {
        {.name = "log-level",
         .arguments = "[debug|info|warn|error]",
         .summary = "Show or change how much the server logs.",
         .details = "  hearth log-level\n"
                    "  hearth log-level debug      from now on, until the server's next start\n\n"
                    "Needs the role admin. `hearth logs --server -f` follows the log.",
         .flags = clientFlags(),
         .least = 0,
         .most = 1,
         .operands = {"debug|info|warn|error"}},
        logLevel};
}

}  // namespace hearth::cli
