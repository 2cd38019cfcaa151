#include <atomic>
#include <catch2/catch.hpp>
#include <semaphore>

#include "api/mcp/http/CallCanceller.h"
#include "tests/support/FakeExecution.h"
#include "tests/support/Support.h"

namespace hearth::mcp {
namespace {

using test::FakeExecution;

struct Cancels {
    SystemClock clock;
    metrics::Log log{-1};
    CallCanceller canceller{clock, log, std::chrono::milliseconds(0)};

    /// Cancels a call of the tenant, which runs `cancel`. The result expires when the call is done.
    std::weak_ptr<void> cancel(const std::string& tenant, std::function<void()> cancel,
                               std::shared_ptr<FakeExecution> work = {}) {
        PendingToolCall call;
        call.tenant = tenant;
        call.call = std::make_shared<Call>();
        call.call->onCancel(cancel);
        call.pending.cancel = std::move(cancel);
        call.pending.work = workOf(work ? std::move(work) : std::make_shared<FakeExecution>());
        call.place = std::make_shared<int>(0);
        canceller.cancel(call);
        return call.place;
    }
};

bool gone(const std::weak_ptr<void>& place) {
    return test::eventually([&] { return place.expired(); });
}

}  // namespace

TEST_CASE("a tenant whose cancels are slow delays only its own", "[unit][mcp]") {
    constexpr int kEach = 9;
    std::counting_semaphore gate(0);
    std::atomic<int> slow{0};
    std::atomic<int> fast{0};
    Cancels cancels;
    std::vector<std::weak_ptr<void>> places;
    for (const char* tenant : {"a", "b", "c"}) {
        for (int i = 0; i < kEach; ++i) {
            places.push_back(cancels.cancel(tenant, [&] {
                gate.acquire();
                ++slow;
            }));
        }
    }
    for (int i = 0; i < kEach; ++i) {
        places.push_back(cancels.cancel("d", [&] { ++fast; }));
    }
    CHECK(test::eventually([&] { return fast == kEach; }));
    CHECK(slow == 0);
    gate.release(3 * kEach);
    for (const auto& place : places) CHECK(gone(place));
    CHECK(slow == 3 * kEach);
}

TEST_CASE("a cancel that its sandbox does not hear is tried again", "[unit][mcp]") {
    std::atomic<int> tries{0};
    Cancels cancels;
    const auto place = cancels.cancel("a", [&] {
        if (++tries < 4) throw Error(ErrorCode::Deadline, "no answer in time");
    });
    CHECK(gone(place));
    CHECK(tries == 4);
}

TEST_CASE("a cancel is not tried again once its work has ended, or in vain", "[unit][mcp]") {
    std::atomic<int> tries{0};
    std::atomic<int> refused{0};
    Cancels cancels;
    const auto work = std::make_shared<FakeExecution>();
    const auto ended = cancels.cancel(
        "a",
        [&] {
            if (++tries == 3) work->end("ok", 0);
            throw Error(ErrorCode::SandboxLost, "it does not answer");
        },
        work);
    const auto unknown = cancels.cancel("a", [&] {
        ++refused;
        throw Error(ErrorCode::NotFound, "no such execution");
    });
    CHECK(gone(ended));
    CHECK(gone(unknown));
    CHECK(tries == 3);
    CHECK(refused == 1);
}

TEST_CASE("a cancel is given up after so many attempts", "[unit][mcp]") {
    std::atomic<unsigned> tries{0};
    Cancels cancels;
    const auto place = cancels.cancel("a", [&] {
        ++tries;
        throw Error(ErrorCode::SandboxLost, "it does not answer");
    });
    CHECK(gone(place));
    CHECK(tries == CallCanceller::kTries);
}

}  // namespace hearth::mcp
