#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "api/cli/BenchDocker.h"
#include "api/cli/BenchReport.h"
#include "api/cli/BenchServer.h"
#include "api/cli/Command.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

constexpr int kWarmUpRounds = 3;
constexpr int kLeastPauseMicros = 300;
constexpr int kMostPauseMicros = 4000;

volatile std::sig_atomic_t g_interrupted = 0;

/// While it lives, SIGINT and SIGTERM end the rounds instead of the program, so that workspace,
/// container and image are removed.
class StopSignals {
public:
    StopSignals() {
        struct sigaction action {};
        action.sa_handler = [](int) { g_interrupted = 1; };
        ::sigaction(SIGINT, &action, &interrupt_);
        ::sigaction(SIGTERM, &action, &terminate_);
    }
    ~StopSignals() {
        ::sigaction(SIGINT, &interrupt_, nullptr);
        ::sigaction(SIGTERM, &terminate_, nullptr);
    }
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

private:
    struct sigaction interrupt_ {};
    struct sigaction terminate_ {};
};

std::set<std::string> chosenNames(const Options& options) {
    std::set<std::string> chosen;
    const std::string only = options.get("only", "");
    for (std::size_t start = 0; start < only.size();) {
        const std::size_t end = std::min(only.find(',', start), only.size());
        const std::string name = only.substr(start, end - start);
        if (std::ranges::find(benchNames(), name) == benchNames().end()) {
            const auto near = suggestion(name, benchNames());
            throw UsageError(
                "--only \"" + name + "\" is unknown",
                near ? "did you mean " + *near + "?" : "use claim, shell, python, file, oneshot");
        }
        chosen.insert(name);
        start = end + 1;
    }
    if (chosen.empty()) chosen.insert(benchNames().begin(), benchNames().end());
    return chosen;
}

std::unique_ptr<BenchDocker> openDocker(const Invocation& call, const std::string& sandbox) {
    const std::string against = call.options.get("against", "");
    if (against.empty()) return nullptr;
    if (against != "docker") {
        throw UsageError("--against \"" + against + "\" is unknown", "use docker");
    }
    const std::string image = call.options.get("docker-image", "");
    const std::string rootfs = call.options.get("docker-rootfs", "");
    if (!image.empty() && !rootfs.empty()) {
        throw UsageError("--docker-image and --docker-rootfs exclude each other",
                         "for a fair comparison give the root file system of the pool's image");
    }
    const std::string url = dockerUrl(call.environment);
    try {
        return std::make_unique<BenchDocker>(url, image, rootfs, sandbox);
    } catch (Error& e) {
        if (e.code() != ErrorCode::Unavailable) throw;
        throw Error(ErrorCode::Unavailable, "no Docker Engine answers at " + url)
            .hint("start dockerd, or set DOCKER_HOST");
    }
}

/// Each round does every operation once, beginning with another one each time, so that none always
/// follows the same neighbour. Gives the rounds that count.
int runRounds(const std::vector<BenchOperation>& operations, int rounds, BenchReport& report,
              const Console& console) {
    std::minstd_rand random(std::random_device{}());
    std::uniform_int_distribution<int> pause(kLeastPauseMicros, kMostPauseMicros);
    const Record keep = [&](Side side, const std::string& series, double milliseconds) {
        report.add(side, series, milliseconds);
    };
    const Record drop = [](Side, const std::string&, double) {};
    int counted = 0;
    for (int round = 0; round < rounds + kWarmUpRounds && g_interrupted == 0; ++round) {
        for (std::size_t i = 0; i < operations.size(); ++i) {
            const BenchOperation& operation =
                operations[(i + static_cast<std::size_t>(round)) % operations.size()];
            if (operation.prepare) operation.prepare();
            ::usleep(static_cast<useconds_t>(pause(random)));
            operation.run(round < kWarmUpRounds ? drop : keep);
        }
        if (round >= kWarmUpRounds) ++counted;
        if (console.err_colour && round % 10 == 0) {
            console.err << "\rround " << round << " of " << rounds + kWarmUpRounds << std::flush;
        }
    }
    if (console.err_colour) console.err << "\r\x1b[K" << std::flush;
    return counted;
}

int bench(const Invocation& call) {
    const std::set<std::string> names = chosenNames(call.options);
    const int rounds = static_cast<int>(call.options.number("rounds", 150, 1, 1'000'000));
    std::optional<pid_t> pid;
    if (call.options.get("pid")) {
        pid = static_cast<pid_t>(call.options.number("pid", 0, 1, 1 << 22));
    }
    Remote remote(call.options);
    BenchReport report;
    report.url = remote.url();
    report.load = loadAverage();
    report.foreign_share = busyShare();
    const StopSignals signals;
    {
        BenchServer server(remote, call.options.get("pool", ""));
        const std::unique_ptr<BenchDocker> docker = openDocker(call, server.sandbox());
        report.pool = server.pool();
        if (names.contains("python") && !server.hasPython()) {
            call.console.note("pool " + server.pool() + " has no Python: left out");
        }
        std::vector<BenchOperation> operations = server.operations(names);
        if (docker) {
            report.docker_version = docker->version();
            report.same_container = docker->sameContainer();
            if (names.contains("file") && !docker->hasFiles()) {
                call.console.note(
                    "docker cp cannot write to the workspace's container: files are "
                    "left out on Docker's side without --docker-image");
            }
            if (names.contains("python") && !docker->hasPython()) {
                call.console.note("the container has no python3: left out on Docker's side");
            }
            for (BenchOperation& o : docker->operations(names)) operations.push_back(std::move(o));
        }
        if (operations.empty()) throw Error(ErrorCode::Unsupported, "nothing is left to measure");
        report.rounds = runRounds(operations, rounds, report, call.console);
        std::tie(report.warm_claims, report.cold_claims) = server.claims();
        report.interpreters = server.interpreters();
        const bool local = report.url.find("://127.") != std::string::npos ||
                           report.url.find("://localhost") != std::string::npos ||
                           report.url.find("://[::1]") != std::string::npos;
        if (local) report.memory = hearthMemory(pid);
    }
    call.console.out << (call.options.on("json") ? report.document().dump(2) + "\n"
                                                 : report.table());
    return g_interrupted != 0 ? 130 : kOk;
}

}  // namespace

Command makeBench() {
    return {
        {.name = "bench",
         .arguments = "",
         .summary = "Measure claims, executions and files of a running server.",
         .details =
             "Each round does every operation once, in rotated order, with a pause of 0.3 to\n"
             "4 ms before each; every answer is verified; three rounds warm up. `claim`\n"
             "and `one shot` wait, unmeasured, until the pool has a warm sandbox. `python`\n"
             "is a fresh interpreter for each run, `context` one that stays.\n\n"
             "With --against docker the same work is done beside it, in the same rounds,\n"
             "by `docker exec` and `docker cp` through the Engine API (DOCKER_HOST). Commands\n"
             "run in the workspace's own container where that Engine has it (--runtime\n"
             "docker), which the report says. Else, and for files, a container is made of\n"
             "--docker-image, or of the tree at --docker-rootfs, which is imported for the\n"
             "run. Both are removed at the end.",
         .flags = withClientFlags(
             {Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "The pool"},
              Flag{.name = "rounds", .value = "N", .help = "Rounds that count", .fallback = "150"},
              Flag{.name = "only",
                   .value = "LIST",
                   .help = "Some of claim,shell,python,context,file,oneshot",
                   .environment = false},
              Flag{.name = "against",
                   .value = "WHAT",
                   .help = "docker: measure it beside, and print the ratio",
                   .environment = false},
              Flag{.name = "docker-image", .value = "IMAGE", .help = "An image the Engine has"},
              Flag{.name = "docker-rootfs", .value = "DIR", .help = "A root file system to import"},
              Flag{.name = "pid",
                   .value = "PID",
                   .help = "The server, for its memory; else found by name",
                   .environment = false},
              Flag{.name = "json", .help = "Print JSON"}})},
        bench};
}

}  // namespace hearth::cli
