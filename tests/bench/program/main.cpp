#include "api/cli/Cli.h"
#include "tests/bench/program/BenchCommand.h"

int main(int argc, char** argv) {
    return hearth::cli::runProgram(argc, argv, hearth::cli::makeBench());
}
