#include "api/cli/Cli.h"
#include "api/config/Settings.h"
#include "api/serve/HearthServer.h"
#include "pool/runtime/fake/FakeRuntime.h"

namespace {

using namespace hearth;

std::unique_ptr<pool::ContainerRuntime> fakeRuntime(const Clock& clock) {
    auto runtime = std::make_unique<pool::FakeRuntime>(clock);
    runtime->begin();
    return runtime;
}

/// `hearth serve` over a runtime in memory: for tests of what lies above runtimes, and to measure
/// the server without containers.
cli::Command fakeServe() {
    return {{.name = "hearth-fake",
             .arguments = "",
             .summary = "Serve REST and MCP over sandboxes that are only imitated.",
             .details = "",
             .flags = cli::serveFlags()},
            [](const cli::Invocation& call) {
                return program::serve(cli::loadServeConfig(call.options), fakeRuntime);
            }};
}

}  // namespace

int main(int argc, char** argv) {
    return cli::runProgram(argc, argv, fakeServe());
}
