#include "tests/bench/program/BenchPools.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/Clock.h"
#include "base/Error.h"
#include "tests/bench/program/BenchPool.h"
#include "tests/bench/program/measure/BenchStop.h"

namespace hearth::cli {
namespace {

constexpr int kWarmUp = 3;
constexpr int kClaims = 50;
constexpr int kEchoes = 100;
constexpr std::size_t kLookedAt = 50;  // sandboxes whose memory is read
constexpr unsigned kPauseMillis = 2;   // sporadic, as in the rounds
constexpr unsigned kSettleMillis = 500;
constexpr std::uint64_t kLeastLeft = 512ULL << 20U;

std::string gibibytes(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / (1ULL << 30U));
    return text;
}

/// Returns the reason not to make a pool of this size; empty if it may be made.
std::string refusal(unsigned size, std::uint64_t each) {
    if (each == 0) return {};
    const std::uint64_t available = availableMemory().value_or(0);
    const unsigned fit = sandboxesThatFit(available, each);
    if (size <= fit) return {};
    return "about " + gibibytes(size * each) + " are needed and " + gibibytes(available) +
           " are free on this machine, enough for " + std::to_string(fit) + " sandboxes";
}

class PoolSize {
public:
    PoolSize(Remote& remote, const Json& like, unsigned size, bool real)
        : remote_(remote), real_(real), kernel_before_(real ? kernelInclusiveMemory() : 0) {
        row_.size = size;
        const unsigned members = std::min(size + 1, BenchPool::kMostMembers);
        // A pool of the maximum size includes the workspace in it.
        warm_ = std::min(size, members - 1);
        const TimePoint begin = clock_.now();
        pool_ = std::make_unique<BenchPool>(remote, like,
                                            BenchPool::Shape{.warm = warm_, .members = members});
        pool_->waitUntilWarm();
        row_.fill_seconds = toSeconds(clock_.now() - begin);
    }

    PoolSizeRow measure() {
        BenchStop::sleep(kSettleMillis);
        if (real_) lookAtMemory();
        claims();
        echoes();
        refill();
        return std::move(row_);
    }

private:
    void lookAtMemory() {
        const std::uint64_t kernel = kernelInclusiveMemory();
        if (kernel > kernel_before_) row_.memory.kernel = (kernel - kernel_before_) / warm_;
        std::vector<std::string> some = pool_->readySandboxes();
        some.resize(std::min(some.size(), kLookedAt));
        const SandboxMemory seen = sandboxMemory(some);
        if (seen.sandboxes > 0) row_.memory.pss = seen.pss_bytes / seen.sandboxes;
    }

    /// Each claim is made from the full pool, while nothing is being made.
    void claims() {
        std::vector<double> times;
        for (int i = 0; i < kWarmUp + kClaims; ++i) {
            pool_->waitUntilWarm();
            BenchStop::sleep(kPauseMillis);
            Json made;
            const double time = timed([&] {
                made = remote_.send("POST", "/v1/workspaces", {{"pool", pool_->name()}}).body;
            });
            BenchWorkspace workspace(remote_, made);
            if (claimSource(made) != "warm") throw wrongAnswer("a claim from a full pool", made);
            if (i >= kWarmUp) times.push_back(time);
            if (real_ && i == 0) {
                const std::uint64_t bytes = workspace.memoryBytes();
                if (bytes > 0) row_.memory.cgroup = bytes;
            }
        }
        row_.claim = summarize(std::move(times));
    }

    void echoes() {
        pool_->waitUntilWarm();
        BenchWorkspace workspace(remote_, pool_->name());
        pool_->waitUntilWarm();
        std::vector<double> times;
        for (int i = 0; i < kWarmUp + kEchoes; ++i) {
            BenchStop::sleep(kPauseMillis);
            const double time = timed(
                [&] { benchExecute(remote_, workspace.executions(), echoWork(), kShellPrints); });
            if (i >= kWarmUp) times.push_back(time);
        }
        row_.echo = summarize(std::move(times));
    }

    /// The server begins to fill the pool during the drain, so both are timed together.
    void refill() {
        pool_->waitUntilWarm();
        const TimePoint begin = clock_.now();
        pool_->drain();
        pool_->waitUntilWarm();
        row_.refill_seconds = toSeconds(clock_.now() - begin);
        row_.refilled = warm_;
    }

    const SystemClock clock_;
    Remote& remote_;
    bool real_;
    std::uint64_t kernel_before_;
    unsigned warm_ = 0;
    PoolSizeRow row_;
    std::unique_ptr<BenchPool> pool_;
};

}  // namespace

unsigned sandboxesThatFit(std::uint64_t available, std::uint64_t each) {
    const std::uint64_t left = std::max(available / 8, kLeastLeft);
    if (available <= left || each == 0) return 0;
    return static_cast<unsigned>(
        std::min<std::uint64_t>((available - left) / each, BenchPool::kMostMembers));
}

void measurePools(Remote& remote, const Json& like, const PoolsPlan& plan,
                  std::vector<PoolSizeRow>& rows,
                  const std::function<void(const std::string&)>& note) {
    for (const unsigned size : plan.sizes) {
        BenchStop::check();
        PoolSizeRow row;
        row.size = size;
        row.refused = refusal(size, plan.each);
        if (row.refused.empty()) {
            note("pool of " + std::to_string(size));
            row = PoolSize(remote, like, size, plan.each > 0).measure();
        }
        rows.push_back(std::move(row));
    }
}

}  // namespace hearth::cli
