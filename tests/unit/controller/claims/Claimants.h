#pragma once

#include <future>
#include <memory>
#include <stop_token>
#include <string>

#include "controller/claims/ClaimQueue.h"
#include "controller/claims/ClaimWait.h"
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
    std::future<std::string> claim(const std::string& workspace, std::stop_token stop = {}) {
        return std::async(std::launch::async, [this, workspace, stop = std::move(stop)] {
            try {
                return queue.acquire(pool, {workspace, "t", {.stop = stop}}).id;
            } catch (const Error& e) {
                return std::string(errorCodeName(e.code()));
            }
        });
    }
    bool waiting(std::size_t count) {
        return eventually([&] { return queue.waiting("p") == count; });
    }
};

/// A claim that stands in line without a thread.
struct Threadless {
    Claimants& q;
    std::string tenant;
    std::shared_ptr<ClaimWait> wait = std::make_shared<ClaimWait>();
    std::shared_ptr<int> told = std::make_shared<int>(0);
    std::shared_ptr<void> subscription{};

    /// Runs the claim. Returns the sandbox's id, "waits", or the code of the refusal.
    std::string run() {
        ClaimPatience patience;
        patience.waits = false;
        patience.wait = wait;
        try {
            return q.queue.acquire(q.pool, {"ws", tenant, patience}).id;
        } catch (const MustWait&) {
            if (!subscription) subscription = wait->subscribe([told = told] { ++*told; });
            return "waits";
        } catch (const Error& e) {
            return std::string(errorCodeName(e.code()));
        }
    }
    void hangUp() { wait.reset(); }
};

}  // namespace hearth::controller::test
