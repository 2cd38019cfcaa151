#include "tests/bench/program/BenchThroughput.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>

#include "base/Clock.h"
#include "base/Error.h"
#include "tests/bench/program/BenchPool.h"
#include "tests/bench/program/measure/BenchStop.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kMostTime{10};
constexpr unsigned kPatienceMillis = 10;
constexpr unsigned kLeastWarm = 32;
constexpr unsigned kMostWarm = 500;  // a pool holds twice this number

/// The state of one client. `how` counts by kind.
struct Client {
    Remote remote;
    std::size_t number = 0;
    BenchCounts how = {};
};

/// One client's turn. It returns the kind of its result ("warm", "zygote").
using Turn = std::function<std::string(Client& client)>;

/// Repeats the call while the server reports that the tenant has used its share of it. The repeats
/// are counted, and their time belongs to the operation.
template <typename Call>
auto patiently(Client& client, const Call& call) {
    while (true) {
        try {
            return call();
        } catch (const RemoteError& e) {
            if (e.status() != 429) throw;
            ++client.how["tried again"];
        }
        BenchStop::sleep(kPatienceMillis);
    }
}

/// The state that all clients of one measurement share.
struct Loop {
    explicit Loop(std::size_t clients) : start(static_cast<std::ptrdiff_t>(clients)) {}

    std::latch start;
    std::atomic<std::int64_t> left{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr failure;  ///< the first one; guarded by mutex
    std::vector<double> times;   ///< guarded by mutex
    BenchCounts how;             ///< guarded by mutex
};

void goRound(Loop& loop, const Turn& turn, Client client) {
    const SystemClock clock;
    std::vector<double> times;
    loop.start.arrive_and_wait();
    try {
        const TimePoint end = clock.now() + kMostTime;
        while (!loop.failed && !BenchStop::asked() && clock.now() < end &&
               loop.left.fetch_sub(1) > 0) {
            const TimePoint begin = clock.now();
            const std::string went = turn(client);
            times.push_back(toMillis(clock.now() - begin));
            ++client.how[went];
        }
    } catch (...) {
        const std::lock_guard lock(loop.mutex);
        if (!loop.failure) loop.failure = std::current_exception();
        loop.failed = true;
    }
    const std::lock_guard lock(loop.mutex);
    loop.times.insert(loop.times.end(), times.begin(), times.end());
    for (const auto& [kind, count] : client.how) loop.how[kind] += count;
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
        closedLoop("one shot", clients, plan_.operations, [this](Client& client) {
            Json work = plan_.python ? pythonWork() : shellWork();
            work["pool"] = pool_.name();
            return claimSource(patiently(client, [&] {
                return benchExecute(client.remote, "/v1/executions", work,
                                    plan_.python ? kPythonPrints : kShellPrints);
            }));
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
                threads.emplace_back(
                    [&loop, &turn, client = Client{remote_.another(), i}]() mutable {
                        goRound(loop, turn, std::move(client));
                    });
            }
            begin = clock.now();
            loop.start.count_down();
        }
        const double seconds = toSeconds(clock.now() - begin);
        BenchStop::check();
        if (loop.failure) std::rethrow_exception(loop.failure);
        report_.throughput.push_back({operation, clients, loop.times.size(), seconds,
                                      summarize(loop.times), std::move(loop.how)});
    }

    /// Claims as many workspaces as the pool has, at once. Then it releases all of them.
    void claims(unsigned clients) {
        std::mutex mutex;
        std::vector<BenchWorkspace> open;  // guarded by mutex; ends the rest
        const std::size_t warm = report_.throughput_pool;
        const Json body = {{"pool", pool_.name()}};
        closedLoop("claim", clients, warm, [&](Client& client) {
            const Json made = patiently(
                client, [&] { return client.remote.send("POST", "/v1/workspaces", body).body; });
            const std::lock_guard lock(mutex);
            open.emplace_back(remote_, made);
            if (made.value("phase", "") != "Active") throw wrongAnswer("a claim", made);
            return claimSource(made);
        });
        closedLoop("release", clients, open.size(), [&](Client& client) {
            std::string target;
            {
                const std::lock_guard lock(mutex);
                target = open.back().release();
                open.pop_back();
            }
            patiently(client, [&] { return client.remote.send("DELETE", target); });
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
        pool_.waitUntilWarm();  // no refill may run meanwhile
        const auto run = [&](Client& client, const Json& work) {
            return patiently(client, [&] {
                return benchExecute(client.remote, open[client.number].executions(), work,
                                    kPythonPrints)
                    .value("interpreter", "unknown");
            });
        };
        closedLoop("python", clients, plan_.operations,
                   [&](Client& client) { return run(client, pythonWork()); });
        closedLoop("context", clients, plan_.operations, [&](Client& client) {
            return run(client, contextWork(contexts[client.number]));
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
    // While each client holds a workspace, the pool beside them is full.
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
