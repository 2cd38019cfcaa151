#include "api/cli/BenchThroughput.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>

#include "api/cli/BenchPool.h"
#include "api/cli/BenchStop.h"
#include "base/Clock.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kMostTime{10};
constexpr unsigned kLeastWarm = 32;
constexpr unsigned kMostWarm = 500;  // twice this fits into a pool

/// One client's turn; says how it went ("warm", "zygote").
using Turn = std::function<std::string(Remote& remote, std::size_t client)>;

/// What all clients of one measurement share.
struct Loop {
    explicit Loop(std::size_t clients) : start(static_cast<std::ptrdiff_t>(clients)) {}

    std::latch start;
    std::atomic<std::int64_t> left{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr failure;  ///< the first; under mutex
    std::vector<double> times;   ///< under mutex
    BenchCounts how;             ///< under mutex
};

void client(Loop& loop, const Turn& turn, Remote remote, std::size_t number) {
    const SystemClock clock;
    std::vector<double> times;
    BenchCounts how;
    loop.start.arrive_and_wait();
    try {
        const TimePoint end = clock.now() + kMostTime;
        while (!loop.failed && !BenchStop::asked() && clock.now() < end &&
               loop.left.fetch_sub(1) > 0) {
            const TimePoint begin = clock.now();
            const std::string went = turn(remote, number);
            times.push_back(toMillis(clock.now() - begin));
            ++how[went];
        }
    } catch (...) {
        const std::lock_guard lock(loop.mutex);
        if (!loop.failure) loop.failure = std::current_exception();
        loop.failed = true;
    }
    const std::lock_guard lock(loop.mutex);
    loop.times.insert(loop.times.end(), times.begin(), times.end());
    for (const auto& [kind, count] : how) loop.how[kind] += count;
}

class Measurement {
public:
    Measurement(Remote& remote, BenchPool& pool, const ThroughputPlan& plan, BenchReport& report)
        : remote_(remote), pool_(pool), plan_(plan), report_(report) {}

    void at(unsigned clients) {
        pool_.waitUntilWarm();
        claims(clients);
        if (plan_.python) {
            pool_.waitUntilWarm();
            interpreters(clients);
        }
        pool_.waitUntilWarm();
        closedLoop("one shot", clients, plan_.operations, [this](Remote& remote, std::size_t) {
            Json work = plan_.python ? pythonWork() : shellWork();
            work["pool"] = pool_.name();
            return claimSource(benchExecute(remote, "/v1/executions", work,
                                            plan_.python ? kPythonPrints : kShellPrints));
        });
    }

private:
    void closedLoop(const std::string& operation, unsigned clients, std::size_t operations,
                    const Turn& turn) {
        BenchStop::check();
        Loop loop(clients + 1);
        loop.left = static_cast<std::int64_t>(operations);
        const SystemClock clock;
        TimePoint begin;
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < clients; ++i) {
                threads.emplace_back([&loop, &turn, remote = remote_.another(), i]() mutable {
                    client(loop, turn, std::move(remote), i);
                });
            }
            begin = clock.now();
            loop.start.count_down();
        }
        const double seconds = toSeconds(clock.now() - begin);
        if (loop.failure) std::rethrow_exception(loop.failure);
        BenchStop::check();
        report_.throughput.push_back({operation, clients, loop.times.size(), seconds,
                                      summarize(loop.times), std::move(loop.how)});
    }

    /// As many as the pool has, at once; then all of them go.
    void claims(unsigned clients) {
        std::mutex mutex;
        std::vector<BenchWorkspace> open;  // under mutex; what is left goes with it
        const std::size_t warm = report_.throughput_pool;
        const Json body = {{"pool", pool_.name()}};
        closedLoop("claim", clients, warm, [&](Remote& remote, std::size_t) {
            const Json made = remote.send("POST", "/v1/workspaces", body).body;
            const std::lock_guard lock(mutex);
            open.emplace_back(remote_, made);
            if (made.value("phase", "") != "Active") throw wrongAnswer("a claim", made);
            return claimSource(made);
        });
        closedLoop("release", clients, open.size(), [&](Remote& remote, std::size_t) {
            std::string target;
            {
                const std::lock_guard lock(mutex);
                target = open.back().release();
                open.pop_back();
            }
            remote.send("DELETE", target);
            return std::string("ok");
        });
    }

    void interpreters(unsigned clients) {
        std::vector<BenchWorkspace> open;
        std::vector<std::string> contexts;
        open.reserve(clients);
        for (unsigned i = 0; i < clients; ++i) {
            BenchStop::check();
            open.emplace_back(remote_, pool_.name());
            contexts.push_back(open.back().newPythonContext());
            benchExecute(remote_, open.back().executions(), pythonWork(), kPythonPrints);
            benchExecute(remote_, open.back().executions(), contextWork(contexts.back()),
                         kPythonPrints);
        }
        pool_.waitUntilWarm();  // so that no refill goes on beside
        const auto run = [&](Remote& remote, std::size_t i, const Json& work) {
            return benchExecute(remote, open[i].executions(), work, kPythonPrints)
                .value("interpreter", "unknown");
        };
        closedLoop("python", clients, plan_.operations,
                   [&](Remote& remote, std::size_t i) { return run(remote, i, pythonWork()); });
        closedLoop("context", clients, plan_.operations, [&](Remote& remote, std::size_t i) {
            return run(remote, i, contextWork(contexts[i]));
        });
    }

    Remote& remote_;
    BenchPool& pool_;
    const ThroughputPlan& plan_;
    BenchReport& report_;
};

}  // namespace

unsigned throughputPoolSize(const ThroughputPlan& plan) {
    const unsigned clients = *std::ranges::max_element(plan.clients);
    // While each client holds a workspace the pool is full beside them.
    const unsigned allowed = plan.most_warm > clients ? plan.most_warm - clients : 0;
    const unsigned warm = std::min({std::max(2 * clients, kLeastWarm), kMostWarm, allowed});
    return warm >= clients ? warm : 0;
}

void measureThroughput(Remote& remote, const Json& like, const ThroughputPlan& plan,
                       BenchReport& report, const std::function<void(const std::string&)>& note) {
    const unsigned warm = throughputPoolSize(plan);
    if (warm == 0) {
        throw Error(ErrorCode::InvalidArgument,
                    "this machine's memory allows " + std::to_string(plan.most_warm) +
                        " further sandboxes, too few for that many clients")
            .hint("give --concurrency smaller numbers, or free memory");
    }
    report.throughput_pool = warm;
    const unsigned most = *std::ranges::max_element(plan.clients);
    BenchPool pool(remote, like, {.warm = warm, .members = warm + most});
    Measurement measurement(remote, pool, plan, report);
    for (const unsigned clients : plan.clients) {
        note("throughput of " + std::to_string(clients) + " clients");
        measurement.at(clients);
    }
}

}  // namespace hearth::cli
