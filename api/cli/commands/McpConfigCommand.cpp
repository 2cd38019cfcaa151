#include "api/cli/commands/Commands.h"
#include "api/cli/commands/McpConfig.h"
#include "api/cli/remote/Remote.h"
#include "api/serve/process/ProgramPath.h"
#include "base/Error.h"
#include "base/http/client/HttpClient.h"

namespace hearth::cli {
namespace {

/// True if a server answers at `url` and serves nobody without a token.
bool wantsToken(const std::string& url, http::ClientOptions options) {
    options.connect_timeout = options.timeout = std::chrono::seconds(1);
    try {
        return http::HttpClient(url, options).get("/v1/capabilities").status == 401;
    } catch (const Error&) {
        return false;  // it need not run yet, nor be reachable from here
    }
}

int mcpConfig(const Invocation& call) {
    const std::string url = call.options.get("url", "http://127.0.0.1:8080");
    const McpConfig config =
        makeMcpConfig(call.options.positional()[0], call.options.get("transport", ""), url,
                      programPath(), call.options.get("token").has_value());
    call.console.note("put this into " + config.file);
    if (!config.remark.empty()) call.console.note(config.remark);
    if (!call.options.get("token") && wantsToken(url, clientOptions(call.options))) {
        call.console.note("the server wants a token: set HEARTH_TOKEN, and repeat this");
    }
    call.console.out << config.text << std::flush;
    return kOk;
}

}  // namespace

Command makeMcpConfig() {
    return {
        {.name = "mcp-config",
         .arguments = "claude|claude-code|cursor|vscode|codex",
         .summary = "Print what an MCP client needs to use Hearth, ready to paste.",
         .details = "  hearth mcp-config claude-code > .mcp.json\n"
                    "  hearth mcp-config codex >> ~/.codex/config.toml\n"
                    "  hearth mcp-config cursor --transport stdio\n\n"
                    "The snippet goes to standard output, where to put it to standard error. A\n"
                    "token is never written into it: the client takes it from HEARTH_TOKEN or\n"
                    "asks for it.",
         .flags = withClientFlags({Flag{.name = "transport",
                                        .value = "NAME",
                                        .help = "http or stdio; claude takes stdio only",
                                        .fallback = "http",
                                        .choices = {"http|stdio"}}}),
         .least = 1,
         .most = 1,
         .operands = {"claude|claude-code|cursor|vscode|codex"}},
        mcpConfig};
}

}  // namespace hearth::cli
