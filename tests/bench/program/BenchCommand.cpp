#include "tests/bench/program/BenchCommand.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "api/command/Command.h"
#include "base/Clock.h"
#include "base/Error.h"
#include "tests/bench/program/BenchChart.h"
#include "tests/bench/program/BenchDocker.h"
#include "tests/bench/program/BenchFakeServer.h"
#include "tests/bench/program/BenchOptions.h"
#include "tests/bench/program/BenchPools.h"
#include "tests/bench/program/BenchReport.h"
#include "tests/bench/program/BenchServer.h"
#include "tests/bench/program/BenchThroughput.h"
#include "tests/bench/program/measure/BenchStop.h"
#include "tests/bench/program/measure/HostLoad.h"

namespace hearth::cli {
namespace {

constexpr int kWarmUpRounds = 3;
constexpr int kLeastPauseMicros = 300;
constexpr int kMostPauseMicros = 4000;
constexpr std::uint64_t kKernelOfSandbox = 2U << 20U;  ///< kernel memory outside its cgroup
constexpr std::size_t kMostLookedAt = 50;

/// One call of the command. It takes one measurement after the other into its report.
class Bench {
public:
    Bench(const Invocation& call, BenchPlan plan)
        : call_(call), plan_(std::move(plan)), remote_(call.options) {}

    /// Returns the exit status.
    int run() {
        if (!plan_.svg.empty()) requireWritable();
        begin();
        try {
            const BenchStop stop;
            measure();
        } catch (const BenchStopped&) {
            report_.stopped = true;
        }
        report_.load_after = loadAverage();
        call_.console.out << (plan_.json ? report_.document().dump(2) + "\n" : benchTable(report_));
        if (!plan_.svg.empty()) draw();
        return report_.stopped ? 130 : kOk;
    }

private:
    void begin() {
        report_.url = remote_.url();
        report_.started_at = formatRfc3339(SystemClock().wall());
        report_.kernel = kernelName();
        report_.processors = processors();
        report_.load_before = loadAverage();
        report_.allow_busy = plan_.allow_busy;
    }

    void measure() {
        report_.foreign_before = busyShare();
        if (plan_.measuresServer()) measureServer();
        if (!plan_.fake_pools.empty()) measureFakePools();
        report_.foreign_after = busyShare();
    }

    void measureServer() {
        readCapabilities();
        std::uint64_t each = 0;
        bool python = true;
        {
            BenchServer server(remote_, plan_.pool);
            report_.pool = server.pool();
            python = server.hasPython();
            if (server.memoryBytes() > 0) {
                report_.memory.cgroup = server.memoryBytes();
                each = server.memoryBytes() + kKernelOfSandbox;
            }
            // The server may have begun just now, and this bench has the first sandbox.
            server.waitUntilWarm();
            lookAtMemory();
            if (plan_.rounds > 0) measureRounds(server);
        }
        const Json like = poolManifest(remote_, report_.pool);
        report_.image = like["spec"]["template"].value("image", "");
        if (report_.runtime == "fake") each = 0;
        if (!plan_.clients.empty()) {
            measureThroughput(remote_, like, throughputPlan(python, each), report_, progress());
        }
        if (!plan_.pools.empty()) {
            requireSeenMemory(each);
            measurePools(remote_, like, {plan_.pools, each}, report_.pools, progress());
        }
    }

    void readCapabilities() {
        const Json told = remote_.get("/v1/capabilities");
        report_.server_version = told.value("version", "?");
        report_.runtime = told.value("runtime", "?");
        report_.runtime_version = told.value("runtimeVersion", "");
    }

    bool local() const {
        return report_.url.find("://127.") != std::string::npos ||
               report_.url.find("://localhost") != std::string::npos ||
               report_.url.find("://[::1]") != std::string::npos;
    }

    void lookAtMemory() {
        if (!local()) return;
        report_.processes = hearthMemory(plan_.pid);
        try {
            std::vector<std::string> ready = readySandboxes(remote_, report_.pool);
            ready.resize(std::min(ready.size(), kMostLookedAt));
            const SandboxMemory seen = sandboxMemory(ready);
            if (seen.sandboxes > 0) report_.memory.pss = seen.pss_bytes / seen.sandboxes;
        } catch (const RemoteError& e) {
            if (e.status() != 403) throw;
            leaveOut("the processes' memory: only an operator's token lists sandboxes");
        }
    }

    void measureRounds(BenchServer& server) {
        std::unique_ptr<BenchDocker> docker;
        if (plan_.docker) docker = openDocker(server.sandbox());
        if (!server.hasPython()) {
            leaveOut("pool " + server.pool() + " has no Python");
        } else if (plan_.names.contains("numpy")) {
            if (const std::string why = server.prepareNumpy(); !why.empty()) leaveOut(why);
        }
        std::set<std::string> names = plan_.names;
        if (names.contains("parked")) {
            if (const std::string why = server.prepareShells(); !why.empty()) {
                leaveOut(why);
                names.erase("parked");
            }
        }
        std::vector<BenchOperation> operations = server.operations(names);
        if (docker) {
            explain(*docker, server.hasPython());
            for (BenchOperation& o : docker->operations(names)) {
                operations.push_back(std::move(o));
            }
        }
        if (operations.empty()) throw Error(ErrorCode::Unsupported, "nothing is left to measure");
        rounds(std::move(operations), [&server] { server.rest(); });
        report_.claims = server.claims();
        report_.interpreters = server.interpreters();
        if (docker) report_.docker_cgroup = docker->memoryBytes();
    }

    std::unique_ptr<BenchDocker> openDocker(const std::string& sandbox) {
        const std::string url = dockerUrl(call_.environment);
        try {
            return std::make_unique<BenchDocker>(url, plan_.docker_image, plan_.docker_rootfs,
                                                 sandbox);
        } catch (Error& e) {
            if (e.code() != ErrorCode::Unavailable) throw;
            throw Error(ErrorCode::Unavailable, "no Docker Engine answers at " + url)
                .hint("start dockerd, or set DOCKER_HOST");
        }
    }

    /// Reports what Docker's side cannot do.
    void explain(const BenchDocker& docker, bool python) {
        report_.docker_version = docker.version();
        report_.same_container = docker.sameContainer();
        if (!docker.hasOwn()) {
            leaveOut(
                "docker cp cannot write to the workspace's container: files are left out on "
                "Docker's side without --docker-image, and so are docker create, run and rm");
        }
        if (python && !docker.hasPython()) leaveOut("Docker's container has no python3");
        if (python && docker.hasPython() && !docker.hasNumpy() && plan_.names.contains("numpy")) {
            leaveOut("Docker's container has no numpy");
        }
    }

    /// Each round runs every operation of both sides once, in a new random order, so that no
    /// operation always follows the same neighbour. `rest` waits until the work that earlier
    /// operations caused has ended: no operation is measured while a refill runs. --pools measures
    /// operations beside refills.
    void rounds(std::vector<BenchOperation> operations, const std::function<void()>& rest) {
        std::minstd_rand random(std::random_device{}());
        std::uniform_int_distribution<int> pause(kLeastPauseMicros, kMostPauseMicros);
        const Record keep = [this](Side side, const std::string& series, double milliseconds) {
            report_.add(side, series, milliseconds);
        };
        const Record drop = [](Side, const std::string&, double) {};
        const auto note = progress();
        for (int round = 0; round < plan_.rounds + kWarmUpRounds; ++round) {
            if (round % 10 == 0) {
                note("round " + std::to_string(round) + " of " +
                     std::to_string(plan_.rounds + kWarmUpRounds));
            }
            std::ranges::shuffle(operations, random);
            for (const BenchOperation& operation : operations) {
                BenchStop::check();
                rest();
                if (operation.prepare) operation.prepare();
                ::usleep(static_cast<useconds_t>(pause(random)));
                operation.run(round < kWarmUpRounds ? drop : keep);
            }
            if (round >= kWarmUpRounds) ++report_.rounds;
        }
        note("");
    }

    void requireSeenMemory(std::uint64_t each) const {
        if (report_.runtime == "fake" || (local() && each > 0)) return;
        throw Error(ErrorCode::Unsupported,
                    "how many sandboxes the server's machine can hold is not to be seen from here")
            .hint("run --pools and --concurrency on that machine, with --url of 127.0.0.1");
    }

    ThroughputPlan throughputPlan(bool python, std::uint64_t each) const {
        requireSeenMemory(each);
        const unsigned fit = each == 0 ? BenchPool::kMostMembers
                                       : sandboxesThatFit(availableMemory().value_or(0), each);
        return {plan_.clients, plan_.operations, python, fit};
    }

    void measureFakePools() {
        const BenchFakeServer server;
        Remote remote(server.url(), http::ClientOptions{});
        const Json like = {
            {"spec", {{"template", {{"image", "fake"}}}, {"warm", {{"parallelCreates", 2}}}}}};
        measurePools(remote, like, {plan_.fake_pools, 0}, report_.fake_pools, progress());
    }

    void leaveOut(const std::string& why) {
        report_.left_out.push_back(why);
        call_.console.note(why);
    }

    /// Returns a function that shows the current step in the last line of a terminal.
    std::function<void(const std::string&)> progress() const {
        return [&console = call_.console](const std::string& text) {
            if (console.err_colour) console.err << "\r\x1b[K" << text << std::flush;
        };
    }

    /// Checks the path before the measurement: a wrong path should not be found after minutes.
    void requireWritable() const {
        const bool there = std::filesystem::exists(plan_.svg);
        const std::ofstream chart(plan_.svg, std::ios::app);  // an older chart stays for now
        if (!chart) {
            throw Error(ErrorCode::InvalidArgument, "cannot write " + plan_.svg)
                .hint("give --svg a file in a folder that exists");
        }
        std::error_code ignored;
        if (!there) std::filesystem::remove(plan_.svg, ignored);
    }

    void draw() const {
        if (report_.rounds == 0) {
            call_.console.note("no chart is drawn: no round was measured");
            return;
        }
        if (!report_.tellsTimes()) {
            call_.console.note("no chart is drawn of a busy machine's times; --allow-busy does it");
            return;
        }
        std::ofstream chart(plan_.svg, std::ios::trunc);
        chart << benchChart(report_);
        chart.close();
        if (!chart) throw Error(ErrorCode::DiskFull, "could not write all of " + plan_.svg);
    }

    const Invocation& call_;
    const BenchPlan plan_;
    Remote remote_;
    BenchReport report_;
};

}  // namespace

Command makeBench() {
    return {{.name = "hearth-bench",
             .arguments = "",
             .summary = "Measure claims, executions and files of a running server.",
             .details =
                 "Rounds: each does every operation once, in an order of its own, with a pause of\n"
                 "0.3 to 4 ms before each; every answer is verified; three rounds warm up. Each\n"
                 "waits, unmeasured, until the pool is full and at rest: what a refill costs is\n"
                 "measured by --pools. `no-op` asks for the workspace. `shell` starts a shell\n"
                 "for each run, `parked` takes one that was started ahead, `python` is a fresh\n"
                 "interpreter for each run, `numpy` one that has imported it, `context` one that\n"
                 "stays, `cold` one started for its environment. For `numpy`, and for `parked`\n"
                 "where the pool keeps no shells, a pool is made for the run.\n\n"
                 "With --against docker the same work is done beside it, in the same rounds,\n"
                 "through the Engine API (DOCKER_HOST): `docker exec` for commands, `docker cp`\n"
                 "for files, `docker run --rm` for one shots, its create and start for claims.\n"
                 "Commands run in the workspace's own container where that Engine has it\n"
                 "(--runtime docker), which the report says. Else, and for files and runs, a\n"
                 "container is made of --docker-image, or of the tree at --docker-rootfs, which\n"
                 "is imported for the run. All is removed at the end.\n\n"
                 "--concurrency measures operations per second of so many clients, --pools how\n"
                 "fast pools of those sizes fill, answer and refill; both make pools of their own\n"
                 "from the template of --pool, as large as free memory allows.\n\n"
                 "Where others use more than 15 % of the processors no times are told, only\n"
                 "ratios, which hold on a busy machine too.",
             .flags = withClientFlags(benchFlags()),
             .program = true},
            [](const Invocation& call) { return Bench(call, benchPlan(call.options)).run(); }};
}

}  // namespace hearth::cli
