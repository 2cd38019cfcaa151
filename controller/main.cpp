#include "api/cli/Cli.h"
#include "controller/program/OfflineState.h"
#include "controller/program/Serve.h"

int main(int argc, char** argv) {
    using namespace hearth;
    cli::Program commands;
    commands.serve = program::serve;
    commands.tokens = program::offlineTokens;
    commands.pools = program::declaredPools;
    commands.manifests = program::declaredInFiles;
    return cli::runCommand(argc, argv, commands);
}
