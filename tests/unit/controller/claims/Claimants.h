#pragma once

#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/task/Blocking.h"
#include "controller/claims/ClaimQueue.h"
#include "tests/support/Stepped.h"
#include "tests/support/Support.h"

namespace hearth::controller::test {

using namespace hearth::test;
using namespace std::chrono_literals;

/// A pool's line, and threads that make claims.
struct Claimants {
    ManualClock clock;
    metrics::Metrics metrics;
    pool::WarmPool warm;
    WorkQueue work{clock, metrics};
    CircuitBreaker breaker{clock};
    ClaimQueue queue{warm, work, breaker, metrics, clock};
    Pool pool;
    int made = 0;

    Claimants() {
        pool.name = "p";
        pool.spec.max_wait = 1min;
    }
    void makeReady() {
        pool::Member member;
        member.id = "sb_" + std::to_string(++made);
        member.pool = "p";
        warm.add(member);
        warm.warming(member.id);
        warm.ready(member.id, nullptr, clock.wall());
    }
    /// Claims in this thread, which waits.
    pool::Member acquire(const Pool& in, ClaimQueue::Claimant claimant,
                         const std::string& workspace = "ws") {
        return resultOf(queue.acquire(in, std::move(claimant), {workspace}), clock).front();
    }
    /// Claims in a thread of its own. Gives the sandbox's id, the code of the refusal, or
    /// "cancelled".
    std::future<std::string> claim(const std::string& workspace, std::stop_token stop = {}) {
        return std::async(std::launch::async, [this, workspace, stop = std::move(stop)] {
            auto task = queue.acquire(pool, {"t"}, {workspace});
            if (stop.stop_requested() || !runToEnd(task, clock, stop)) {
                return std::string("cancelled");
            }
            try {
                return task.result().front().id;
            } catch (const Error& e) {
                return std::string(errorCodeName(e.code()));
            }
        });
    }
    bool waiting(std::size_t count) {
        return eventually([&] { return queue.waiting("p") == count; });
    }
};

/// A claim that the test runs by hand.
struct Waiting {
    Claimants& q;
    std::string tenant;
    std::optional<Stepped<std::vector<pool::Member>>> claim{};
    std::shared_ptr<int> told = std::make_shared<int>(0);
    std::shared_ptr<void> subscription{};

    /// Runs the claim. Returns the sandbox's id, "waits", or the code of the refusal.
    std::string run() {
        if (!claim) claim.emplace(q.queue.acquire(q.pool, {tenant}, {"ws"}), q.clock);
        std::string outcome = "waits";
        try {
            if (!claim->run()) {
                if (!subscription) {
                    subscription = claim->wait()->subscribe([told = told] { ++*told; });
                }
                return outcome;
            }
            outcome = claim->result().front().id;
        } catch (const Error& e) {
            outcome = std::string(errorCodeName(e.code()));
        }
        claim.reset();
        return outcome;
    }
    bool due() const { return claim->due(); }
    Waitable::Progress progress() const { return *claim->wait()->progress(); }
    void hangUp() { claim.reset(); }
};

}  // namespace hearth::controller::test
