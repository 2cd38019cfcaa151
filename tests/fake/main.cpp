#include "api/cli/Cli.h"
#include "api/config/Settings.h"
#include "api/serve/HearthServer.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "tests/fake/runtime/FakeRuntime.h"

namespace {

using namespace hearth;

class PreparedFake final : public program::PreparedRuntime {
public:
    std::unique_ptr<pool::ContainerRuntime> make(const program::RuntimeParts& parts) override {
        auto runtime = std::make_unique<pool::FakeRuntime>(parts.clock);
        runtime->begin();
        return runtime;
    }
};

class FakeFactory final : public program::RuntimeFactory {
public:
    program::RuntimeFit fit(const cli::ServeConfig&) const override {
        return {true, "it needs nothing"};
    }
    std::unique_ptr<program::PreparedRuntime> prepare(
        const cli::ServeConfig&, const Instance& instance,
        const controller::Account& account) const override {
        program::makeServerDirectories(instance, account);
        return std::make_unique<PreparedFake>();
    }
};

/// The command `hearth serve` over a runtime in memory: for tests of the layers above runtimes, and
/// to measure the server without containers.
cli::Command fakeServe() {
    return {{.name = "hearth-fake",
             .arguments = "",
             .summary = "Serve REST and MCP over sandboxes that are only imitated.",
             .details = "",
             .flags = cli::serveFlags()},
            [](const cli::Invocation& call) {
                const FakeFactory fake;
                return program::serve(cli::loadServeConfig(call.options), {.runtime = &fake});
            }};
}

}  // namespace

int main(int argc, char** argv) {
    return cli::runProgram(argc, argv, fakeServe());
}
