#include "api/cli/Cli.h"
#include "api/config/Settings.h"
#include "api/serve/HearthServer.h"
#include "tests/conformance/Conformance.h"

namespace {

using namespace hearth;

/// The command `hearth serve` with the fixtures of the conformance suite beside Hearth's own tools.
cli::Command conformanceServe() {
    return {
        {.name = "hearth-conformance",
         .arguments = "",
         .summary = "Serve REST and MCP with the fixtures of the official MCP conformance suite.",
         .details = "",
         .flags = cli::serveFlags()},
        [](const cli::Invocation& call) {
            program::Replacements replaced;
            replaced.catalog = mcp::conformance::catalog;
            return program::serve(cli::loadServeConfig(call.options), replaced);
        }};
}

}  // namespace

int main(int argc, char** argv) {
    return cli::runProgram(argc, argv, conformanceServe());
}
