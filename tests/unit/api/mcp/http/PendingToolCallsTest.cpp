#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "api/mcp/http/PendingToolCalls.h"
#include "tests/support/FakeExecution.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/Support.h"

namespace hearth::mcp {
namespace {

using test::FakeExecution;
using test::FakeStream;

struct Answers {
    SystemClock clock;
    metrics::Log log{-1};
    std::stop_source server;
    PendingToolCalls calls{clock, log};

    /// Follows a call of the tenant, which has ended if `ended` is true. `answer` makes its result.
    std::shared_ptr<FakeStream> follow(const std::string& tenant, std::function<Json()> answer,
                                       bool ended = true) {
        const auto work = std::make_shared<FakeExecution>();
        if (ended) work->end("ok", 0);
        PendingToolCall call;
        call.id = 1;
        call.tenant = tenant;
        call.call = std::make_shared<Call>();
        call.pending.work = workOf(work);
        call.pending.cancel = [] {};
        call.answer = std::move(answer);
        call.started_at = clock.now();
        const auto stream = std::make_shared<FakeStream>(tenant);
        std::vector<PendingToolCall> all;
        all.push_back(std::move(call));
        calls.follow(std::make_shared<StreamSink>(stream), std::move(all), server.get_token(),
                     PendingToolCalls::HangUp::LeavesRunning);
        return stream;
    }
};

}  // namespace

TEST_CASE("long answers of a tenant delay those of no other", "[unit][mcp]") {
    std::promise<void> over;
    const std::shared_future<void> until = over.get_future().share();
    Answers answers;
    std::vector<std::shared_ptr<FakeStream>> slow;
    for (int i = 0; i < 20; ++i) {
        slow.push_back(answers.follow("slow", [until] {
            until.wait();
            return resultMessage(1, "late");
        }));
    }
    const auto other = answers.follow("other", [] { return resultMessage(1, "early"); });
    const bool came =
        test::eventually([&] { return other->text().find("early") != std::string::npos; });
    over.set_value();
    CHECK(came);
    for (const auto& stream : slow) CHECK(stream->until("").find("late") != std::string::npos);
}

TEST_CASE("when the server stops, each call is answered with its state", "[unit][mcp]") {
    std::vector<std::shared_ptr<FakeStream>> streams;
    {
        Answers answers;
        for (int i = 0; i < 20; ++i) {
            streams.push_back(answers.follow(
                "t", [] { return resultMessage(1, "it runs"); }, false));
        }
        answers.server.request_stop();
        for (const auto& stream : streams) {
            CHECK(stream->until("").find("it runs") != std::string::npos);
        }
        // A call that comes after the stop, or is there when this object ends, is answered too.
        streams.push_back(answers.follow(
            "t", [] { return resultMessage(1, "it runs"); }, false));
    }
    CHECK(streams.back()->text().find("it runs") != std::string::npos);
}

}  // namespace hearth::mcp
