#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <semaphore>

#include "api/mcp/http/ToolCalls.h"
#include "tests/support/FakeExecution.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/FakeServices.h"
#include "tests/support/Support.h"

// Calls on streams, without a server that makes them.

namespace hearth::mcp {
namespace {

using test::eventually;
using test::FakeExecution;
using test::FakeStock;
using test::FakeStream;
using HangUp = ToolCalls::HangUp;

/// Makes an answer when the execution has ended, or the server stops.
Task<Json> afterEnd(std::shared_ptr<Call> call, std::shared_ptr<FakeExecution> execution,
                    std::function<Json()> make) {
    class End final : public Waitable {
    public:
        End(std::shared_ptr<FakeExecution> execution, WaitablePtr stop)
            : execution_(std::move(execution)), stop_(std::move(stop)) {}
        bool ready() const override { return execution_->finished() || stop_->ready(); }
        std::shared_ptr<void> subscribe(std::function<void()> wake) override {
            return std::make_shared<std::vector<std::shared_ptr<void>>>(
                std::vector{execution_->subscribe(wake), stop_->subscribe(wake)});
        }

    private:
        const std::shared_ptr<FakeExecution> execution_;
        const WaitablePtr stop_;
    };
    auto end = std::make_shared<End>(execution, call->serverStop());
    co_await end;
    co_return make();
}

/// Makes something of the stock, which `undo` ends.
Task<Json> afterClaim(std::shared_ptr<Call> call, FakeStock& stock, std::function<void()> undo) {
    Task<> taking = stock.take();
    co_await taking;
    call->made(std::move(undo));
    co_return resultMessage(1, "made");
}

struct Calls {
    SystemClock clock;
    metrics::Log log{-1};
    FakeStock stock;
    std::stop_source server;
    std::atomic<int> told{0};
    ToolCalls calls{clock, log, std::chrono::milliseconds(0)};

    ToolCall toolCall(const std::string& tenant, std::shared_ptr<Call> call, Task<Json> answer) {
        ToolCall made{.call = std::move(call),
                      .progress_token = {},
                      .tenant = tenant,
                      .started_at = clock.now(),
                      .log_severity = {},
                      .answer = std::move(answer)};
        made.place = std::make_shared<int>(0);
        made.told = [this] { ++told; };
        return made;
    }
    std::shared_ptr<FakeStream> follow(ToolCall call, HangUp hang_up = HangUp::LeavesRunning) {
        const auto stream = std::make_shared<FakeStream>(call.tenant);
        call.goOn(clock);
        calls.follow(std::move(call), std::make_shared<StreamSink>(stream), server.get_token(),
                     hang_up);
        return stream;
    }
    /// Follows a call with an execution, which has ended if `ended`. `make` makes its answer.
    std::shared_ptr<FakeStream> run(const std::string& tenant, std::function<Json()> make,
                                    bool ended = true) {
        const auto call = std::make_shared<Call>();
        const auto execution = std::make_shared<FakeExecution>();
        ToolCall running = toolCall(tenant, call, afterEnd(call, execution, std::move(make)));
        const auto stream = follow(std::move(running));
        if (ended) execution->end("ok", 0);
        return stream;
    }
    /// Cancels a call whose execution `kill` ends. The result expires when the call is done.
    std::weak_ptr<void> cancel(const std::string& tenant, std::function<void()> kill,
                               std::shared_ptr<FakeExecution> execution = {}) {
        if (!execution) execution = std::make_shared<FakeExecution>();
        const auto call = std::make_shared<Call>();
        call->runs(execution, clock.now(), std::move(kill));
        ToolCall running = toolCall(tenant, call, afterEnd(call, execution, [] { return Json(); }));
        std::weak_ptr<void> place = running.place;
        call->cancel();
        follow(std::move(running));
        return place;
    }
    bool holds() { return stock.waiting(1); }
};

bool gone(const std::weak_ptr<void>& place) {
    return eventually([&] { return place.expired(); });
}

}  // namespace

TEST_CASE("long answers of one tenant delay no answer of another", "[unit][mcp]") {
    std::promise<void> over;
    const std::shared_future<void> until = over.get_future().share();
    Calls calls;
    std::vector<std::shared_ptr<FakeStream>> slow;
    for (int i = 0; i < 20; ++i) {
        slow.push_back(calls.run("slow", [until] {
            until.wait();
            return resultMessage(1, "late");
        }));
    }
    const auto other = calls.run("other", [] { return resultMessage(1, "early"); });
    const bool came = eventually([&] { return other->text().find("early") != std::string::npos; });
    over.set_value();
    CHECK(came);
    for (const auto& stream : slow) CHECK(stream->until("").find("late") != std::string::npos);
    CHECK(calls.told == 21);
}

TEST_CASE("when the server stops, each call is answered with its state", "[unit][mcp]") {
    Calls calls;
    const auto run = [&] {
        return calls.run(
            "t", [] { return resultMessage(1, "it runs"); }, false);
    };
    std::vector<std::shared_ptr<FakeStream>> streams;
    for (int i = 0; i < 20; ++i) streams.push_back(run());
    calls.server.request_stop();
    streams.push_back(run());  // one that comes after the stop
    for (const auto& stream : streams) {
        CHECK(stream->until("").find("it runs") != std::string::npos);
    }
}

TEST_CASE("slow cancels of a tenant delay only its own cancels", "[unit][mcp]") {
    constexpr int kEach = 9;
    std::counting_semaphore gate(0);
    std::atomic<int> slow{0};
    std::atomic<int> fast{0};
    Calls calls;
    std::vector<std::weak_ptr<void>> places;
    for (const char* tenant : {"a", "b", "c"}) {
        for (int i = 0; i < kEach; ++i) {
            places.push_back(calls.cancel(tenant, [&] {
                gate.acquire();
                ++slow;
            }));
        }
    }
    for (int i = 0; i < kEach; ++i) places.push_back(calls.cancel("d", [&] { ++fast; }));
    CHECK(eventually([&] { return fast == kEach; }));
    CHECK(slow == 0);
    gate.release(3 * kEach);
    for (const auto& place : places) CHECK(gone(place));
    CHECK(slow == 3 * kEach);
}

TEST_CASE("a cancel without an answer of its sandbox is tried again", "[unit][mcp]") {
    std::atomic<int> tries{0};
    Calls calls;
    const auto place = calls.cancel("a", [&] {
        if (++tries < 4) throw Error(ErrorCode::Deadline, "no answer in time");
    });
    CHECK(gone(place));
    CHECK(tries == 4);
}

TEST_CASE("a cancel is not repeated once its work has ended, or if it cannot succeed",
          "[unit][mcp]") {
    std::atomic<int> tries{0};
    std::atomic<int> refused{0};
    Calls calls;
    const auto work = std::make_shared<FakeExecution>();
    const auto ended = calls.cancel(
        "a",
        [&] {
            if (++tries == 3) work->end("ok", 0);
            throw Error(ErrorCode::SandboxLost, "it does not answer");
        },
        work);
    const auto unknown = calls.cancel("a", [&] {
        ++refused;
        throw Error(ErrorCode::NotFound, "no such execution");
    });
    CHECK(gone(ended));
    CHECK(gone(unknown));
    CHECK(tries == 3);
    CHECK(refused == 1);
}

TEST_CASE("a cancel is given up after a fixed number of attempts", "[unit][mcp]") {
    std::atomic<unsigned> tries{0};
    Calls calls;
    const auto place = calls.cancel("a", [&] {
        ++tries;
        throw Error(ErrorCode::SandboxLost, "it does not answer");
    });
    CHECK(gone(place));
    CHECK(tries == ToolCalls::kTries);
}

TEST_CASE("the result of a claim is undone if its client never learns of it", "[unit][mcp]") {
    Calls calls;
    std::atomic<int> ended{0};
    const auto claim = [&](const std::shared_ptr<Call>& call) {
        calls.stock.hold();
        return calls.toolCall("a", call, afterClaim(call, calls.stock, [&] { ++ended; }));
    };
    const auto told = std::make_shared<Call>();
    const auto stream = calls.follow(claim(told));
    REQUIRE(calls.holds());
    calls.stock.free();
    CHECK(stream->until("").find("made") != std::string::npos);
    told->cancel();
    CHECK(calls.told == 1);
    CHECK(ended == 0);

    // It was made, and then its client went.
    const auto unheard = std::make_shared<Call>();
    ToolCall made = claim(unheard);
    calls.stock.free();
    made.goOn(calls.clock);
    REQUIRE(made.answer.ended());
    const auto closed = std::make_shared<FakeStream>("a");
    closed->finish();
    calls.calls.follow(std::move(made), std::make_shared<StreamSink>(closed), {},
                       HangUp::LeavesRunning);
    CHECK(eventually([&] { return ended == 1; }));
    CHECK(calls.told == 1);
}

TEST_CASE("a call that races with its cancel is either answered or undone", "[unit][mcp]") {
    Calls calls;
    std::atomic<int> made{0};
    std::atomic<int> ended{0};
    for (int round = 0; round < 200; ++round) {
        calls.stock.hold();
        const auto call = std::make_shared<Call>();
        ToolCall claiming =
            calls.toolCall("a", call, afterClaim(call, calls.stock, [&] { ++ended; }));
        const std::weak_ptr<void> place = claiming.place;
        const auto stream = calls.follow(std::move(claiming));
        REQUIRE(calls.holds());
        std::jthread canceller([&] { call->cancel(); });
        calls.stock.free();
        canceller.join();
        REQUIRE(gone(place));
        if (stream->text().find("made") != std::string::npos) ++made;
        REQUIRE(calls.stock.waiting(0));
    }
    CHECK(made == calls.told);
}

TEST_CASE("the answers of a batch come together, without those of cancelled calls", "[unit][mcp]") {
    Calls calls;
    const auto first = std::make_shared<Call>();
    const auto second = std::make_shared<Call>();
    const auto run = std::make_shared<FakeExecution>();
    std::atomic<int> killed{0};
    second->runs(run, calls.clock.now(), [&] { ++killed; });
    std::vector<ToolCall> both;
    const auto execution = std::make_shared<FakeExecution>();
    both.push_back(calls.toolCall(
        "a", first, afterEnd(first, execution, [] { return resultMessage(1, "first"); })));
    both.push_back(calls.toolCall(
        "a", second, afterEnd(second, run, [] { return resultMessage(2, "second"); })));
    Task<std::vector<Json>> answers = calls.calls.answers(std::move(both), {});
    REQUIRE_FALSE(answers.run());
    second->cancel();
    REQUIRE(answers.wait()->ready());
    REQUIRE_FALSE(answers.run());
    CHECK(eventually([&] { return killed > 0; }));  // at once, though the other one still runs
    execution->end("ok", 0);
    REQUIRE(answers.wait()->ready());
    REQUIRE(answers.run());
    const std::vector<Json> said = answers.result();
    CHECK(said.at(0)["result"] == "first");
    CHECK(said.at(1).is_null());
    CHECK(calls.told == 1);
}

TEST_CASE("a client that leaves a batch gets no answer, and its results are undone",
          "[unit][mcp]") {
    Calls calls;
    std::atomic<int> ended{0};
    {
        const auto made = std::make_shared<Call>();
        const auto waits = std::make_shared<Call>();
        std::vector<ToolCall> both;
        both.push_back(calls.toolCall("a", made, afterClaim(made, calls.stock, [&] { ++ended; })));
        both.push_back(calls.toolCall(
            "a", waits, afterEnd(waits, std::make_shared<FakeExecution>(), [] { return Json(); })));
        Task<std::vector<Json>> answers = calls.calls.answers(std::move(both), {});
        REQUIRE_FALSE(answers.run());
        CHECK(ended == 0);
    }
    CHECK(eventually([&] { return ended == 1; }));
    CHECK(calls.told == 0);
}

TEST_CASE("an answer whose call was cancelled meanwhile is not sent, and what it made is ended",
          "[unit][mcp]") {
    Calls calls;
    std::atomic<int> ended{0};
    const auto made = std::make_shared<Call>();
    const auto waits = std::make_shared<Call>();
    const auto execution = std::make_shared<FakeExecution>();
    std::vector<ToolCall> both;
    both.push_back(calls.toolCall("a", made, afterClaim(made, calls.stock, [&] { ++ended; })));
    both.push_back(calls.toolCall(
        "a", waits, afterEnd(waits, execution, [] { return resultMessage(2, "end"); })));
    Task<std::vector<Json>> answers = calls.calls.answers(std::move(both), {});
    REQUIRE_FALSE(answers.run());
    made->cancel();
    execution->end("ok", 0);
    REQUIRE(answers.run());
    CHECK(answers.result().at(0).is_null());
    CHECK(eventually([&] { return ended == 1; }));
}

}  // namespace hearth::mcp
