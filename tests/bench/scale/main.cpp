#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api/cli/Cli.h"
#include "tests/bench/program/measure/HostLoad.h"
#include "tests/bench/program/measure/Statistics.h"
#include "tests/bench/scale/ScalePlane.h"

namespace {

using namespace hearth;
using bench::ScalePlane;

constexpr std::int64_t kPools = 100;
constexpr std::int64_t kOfPool = 100;
constexpr std::int64_t kClaims = 2000;
constexpr unsigned kReconcileRounds = 20;
constexpr unsigned kSmallPool = 10;
constexpr unsigned kDeepPool = 1000;  // the most that a manifest may ask for
constexpr unsigned kReclaims = 200;
constexpr std::int64_t kGuaranteed = 4;
constexpr unsigned kDelayedKeys = 100'000;
constexpr rlim_t kDescriptors = 2;  // both ends of a sandbox's connection
constexpr rlim_t kOwnDescriptors = 500;
constexpr int kLeastPauseMicros = 1500;  // covers one end and the next start
constexpr int kMostPauseMicros = 4000;

/// Returns how many sandboxes this process may hold at once.
std::size_t mostSandboxes() {
    struct rlimit limit {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throwErrno("setrlimit", "RLIMIT_NOFILE");
    return limit.rlim_max < kOwnDescriptors ? 0 : (limit.rlim_max - kOwnDescriptors) / kDescriptors;
}

std::string figure(double value, int digits) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(digits) << value;
    return out.str();
}

std::string said(const cli::Summary& of, int digits, const std::string& unit) {
    return "p50 " + figure(of.p50, digits) + ", p99 " + figure(of.p99, digits) + " " + unit;
}

struct Setting {
    std::string name;
    std::unique_ptr<ScalePlane> plane;
    std::vector<double> claims{};
};

/// Makes one claim of each in turn, so that other load on the machine hits all of them alike.
void claimInTurns(std::vector<Setting>& settings, unsigned rounds) {
    std::minstd_rand random(1);
    std::uniform_int_distribution<int> pause(kLeastPauseMicros, kMostPauseMicros);
    for (unsigned round = 0; round < rounds; ++round) {
        for (Setting& each : settings) {
            each.claims.push_back(each.plane->claim());
            std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
        }
    }
}

int run(const cli::Invocation& call) {
    auto pools = static_cast<unsigned>(call.options.number("pools", kPools, 1, 1000));
    const auto of_pool = static_cast<unsigned>(call.options.number("warm", kOfPool, 1, kDeepPool));
    const auto rounds =
        static_cast<unsigned>(call.options.number("claims", kClaims, 10, 1'000'000));
    // The claims themselves need a sandbox that is not guaranteed to another tenant.
    const unsigned guaranteed = std::min(
        of_pool - 1,
        static_cast<unsigned>(call.options.number("guaranteed", kGuaranteed, 0, kSmallPool - 1)));
    const cli::Console& console = call.console;
    const auto note = [&](const std::string& what) { console.note(what); };
    const std::size_t most = mostSandboxes();
    const std::size_t smaller = kDeepPool + 2 * kSmallPool;
    if (most < smaller + of_pool) {
        throw Error(ErrorCode::Unavailable, "the hard limit of open files is too low for one pool")
            .hint("raise it with ulimit -Hn");
    }
    if (pools > (most - smaller) / of_pool) {
        pools = static_cast<unsigned>((most - smaller) / of_pool);
        note("the hard limit of open files (ulimit -Hn) leaves room for " + std::to_string(pools) +
             " pools");
    }
    const unsigned all = pools * of_pool;

    cli::Table table({"What", "Measured"});
    const double connection = bench::connectionBytes(all);
    note("filling " + std::to_string(pools) + " pools of " + std::to_string(of_pool));
    std::vector<Setting> settings;
    const double none = bench::heapBytes();
    settings.push_back({"1 pool of " + std::to_string(kSmallPool),
                        std::make_unique<ScalePlane>(ScalePlane::Size{1, kSmallPool})});
    settings.front().plane->fill();
    const double before = bench::heapBytes();
    const double of_plane = before - none;  // nearly all of this does not grow
    settings.push_back({std::to_string(pools) + " pools of " + std::to_string(of_pool),
                        std::make_unique<ScalePlane>(ScalePlane::Size{pools, of_pool})});
    ScalePlane& wide = *settings.back().plane;
    table.add({"filled", figure(wide.fill(), 1) + " s"});
    table.add({"heap of a sandbox with its imitated agent and connection",
               figure(connection, 0) + " bytes"});
    table.add({"heap of the plane for a sandbox, besides",
               figure((bench::heapBytes() - before - of_plane) / all - connection, 0) + " bytes"});
    table.add(
        {"reconcile of one pool", said(cli::summarize(wide.reconcile(kReconcileRounds)), 0, "us")});

    const unsigned reclaims = std::min(kReclaims, all);
    note("waiting for the ends of " + std::to_string(reclaims) + " idle workspaces");
    table.add({"an idle workspace ends after it was due",
               said(cli::summarize(wide.reclaim(reclaims)), 0, "ms")});
    wide.fill();

    note("claims, in turns with smaller planes");
    settings.push_back({"1 pool of " + std::to_string(kDeepPool),
                        std::make_unique<ScalePlane>(ScalePlane::Size{1, kDeepPool})});
    settings.push_back(
        {"1 pool of " + std::to_string(kSmallPool) + ", " + std::to_string(kDelayedKeys) +
             " delayed keys",
         std::make_unique<ScalePlane>(ScalePlane::Size{1, kSmallPool, kDelayedKeys})});
    for (Setting& each : settings) each.plane->fill();
    claimInTurns(settings, rounds);
    const auto tell = [&](const std::string& besides) {
        for (const Setting& each : settings) {
            table.add(
                {"claim, " + each.name + besides, said(cli::summarize(each.claims), 3, "ms")});
        }
    };
    tell("");
    if (guaranteed > 0) {
        note("claims beside guaranteed tenants");
        for (Setting& each : settings) {
            each.claims.clear();
            each.plane->guarantee(guaranteed);
        }
        claimInTurns(settings, rounds);
        tell(", " + std::to_string(guaranteed) + " tenants guaranteed");
    }

    note("ending the plane and adopting " + std::to_string(all) + " sandboxes");
    wide.fill();
    table.add({"adopted after a crash", figure(wide.restart(), 2) + " s"});
    console.out << cli::kernelName() << ", " << cli::processors() << " processors, load "
                << figure(cli::loadAverage()[0], 1) << "\n"
                << table.text();
    return cli::kOk;
}

cli::Flag number(const char* name, const char* help, std::int64_t fallback) {
    return {.name = name,
            .value = "N",
            .help = help,
            .fallback = std::to_string(fallback),
            .environment = false};
}

cli::Command scale() {
    return {
        {.name = "hearth-scale",
         .arguments = "",
         .summary = "Measure the control plane with many sandboxes, imitated in this process.",
         .details = "Fills the pools, reconciles them, claims in turns with smaller planes, and "
                    "adopts all "
                    "sandboxes after a crash.",
         .flags = {number("pools", "pools", kPools),
                   number("warm", "warm sandboxes of a pool", kOfPool),
                   number("claims", "claims of each kind", kClaims),
                   number("guaranteed",
                          "tenants that are guaranteed a workspace of each pool in the second half "
                          "of the claims; 0: no second half",
                          kGuaranteed)},
         .program = true},
        run};
}

}  // namespace

int main(int argc, char** argv) {
    return cli::runProgram(argc, argv, scale());
}
