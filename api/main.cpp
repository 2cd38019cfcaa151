#include "api/cli/Cli.h"

int main(int argc, char** argv) {
    return hearth::cli::runCommand(argc, argv);
}
