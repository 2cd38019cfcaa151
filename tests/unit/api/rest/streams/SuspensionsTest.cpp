#include <atomic>
#include <catch2/catch.hpp>
#include <semaphore>

#include "api/rest/streams/ClaimStreams.h"
#include "api/rest/streams/Suspensions.h"
#include "base/Subscribers.h"
#include "controller/claims/ClaimWait.h"
#include "tests/support/FakeExecution.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::rest;
using namespace hearth::test;

namespace {

/// A line in which a claim waits until the test releases it.
struct Line {
    std::atomic<bool> due = false;
    std::atomic<int> left = 0;
    std::atomic<int> asked = 0;
    TimePoint until{std::chrono::seconds(30)};
    Subscribers subscribers;
};

class FakeStage final : public controller::ClaimWait::Stage {
public:
    explicit FakeStage(Line& line) : line_(line) {}
    ~FakeStage() override { ++line_.left; }
    bool due() const override {
        ++line_.asked;
        return line_.due;
    }
    TimePoint until() const override { return line_.until; }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return line_.subscribers.add(std::move(changed));
    }
    controller::ClaimWait::Progress progress() const override {
        return {"a sandbox of pool python", 3, 7, std::chrono::seconds(12)};
    }

private:
    Line& line_;
};

struct Waiting {
    Line line;
    FakeRequest request{"POST", "/v1/workspaces"};
    int runs = 0;

    api::Response start() {
        return whenClaimed(request, [this](const controller::ClaimPatience& patience) {
            ++runs;
            CHECK_FALSE(patience.waits);
            if (!line.due) {
                if (!patience.wait->stage()) {
                    patience.wait->waitFor(std::make_shared<FakeStage>(line));
                }
                throw controller::MustWait("a sandbox");
            }
            patience.wait->forget();
            api::Response response;
            response.status = 201;
            return response;
        });
    }
};

}  // namespace

TEST_CASE("a claim that need not wait is answered at once", "[unit][rest]") {
    Waiting waiting;
    waiting.line.due = true;
    CHECK(waiting.start().status == 201);
    CHECK(waiting.runs == 1);
}

TEST_CASE("a claim that has to wait is suspended, and run again when its turn has come",
          "[unit][rest]") {
    Waiting waiting;
    api::Response response = waiting.start();
    auto& suspension = std::get<api::Suspension>(response.body);
    CHECK(suspension.until == TimePoint{std::chrono::seconds(30)});
    CHECK_FALSE(suspension.ready());
    int woken = 0;
    const auto subscription = suspension.subscribe([&woken] { ++woken; });
    waiting.line.due = true;
    waiting.line.subscribers.notify();
    CHECK(woken == 1);
    CHECK(suspension.ready());
    CHECK(suspension.resume().status == 201);
    CHECK(waiting.line.left == 1);
}

TEST_CASE("a claim whose client has gone leaves the line and is not run again", "[unit][rest]") {
    Waiting hung_up;
    hung_up.start();  // the front drops the suspension
    CHECK(hung_up.line.left == 1);

    Waiting late;
    api::Response response = late.start();
    late.line.due = true;
    late.request.gone = true;
    CHECK(codeOf([&] { std::get<api::Suspension>(response.body).resume(); }) ==
          ErrorCode::Unavailable);
    CHECK(late.runs == 1);
}

TEST_CASE("who waits for an execution is told if its sandbox does not answer", "[unit][rest]") {
    const ManualClock clock;
    const auto execution = std::make_shared<FakeExecution>();
    const auto make = [] { return api::Response{}; };
    api::Response response = whenFinished(clock, execution, TimePoint::max(), make);
    auto& suspension = std::get<api::Suspension>(response.body);
    CHECK_FALSE(suspension.ready());
    CHECK(suspension.resume().status == 200);  // the server stops
    int woken = 0;
    const auto subscription = suspension.subscribe([&woken] { ++woken; });
    execution->fallSilent();
    CHECK(woken == 1);
    CHECK(suspension.ready());
    CHECK(codeOf([&] { suspension.resume(); }) == ErrorCode::Deadline);
    CHECK(codeOf([&] { whenFinished(clock, execution, TimePoint::max(), make); }) ==
          ErrorCode::Deadline);
    execution->end("ok", 0);  // it has answered meanwhile
    CHECK(suspension.resume().status == 200);
}

TEST_CASE("a claim that is run too early waits on, but not where the server stops",
          "[unit][rest]") {
    Waiting waiting;
    api::Response response = waiting.start();
    api::Response again = std::get<api::Suspension>(response.body).resume();
    REQUIRE(std::holds_alternative<api::Suspension>(again.body));
    CHECK(waiting.line.left == 0);
    waiting.request.stop.request_stop();
    CHECK(codeOf([&] { std::get<api::Suspension>(again.body).resume(); }) ==
          ErrorCode::Unavailable);
    const Error refused = errorOf([&] { std::get<api::Suspension>(again.body).give_up(); });
    CHECK(refused.code() == ErrorCode::RateLimited);
    CHECK(refused.retryAfter() > std::chrono::seconds(0));
}

TEST_CASE("a stream tells the place of its claim, then what the claim's last run sends",
          "[unit][rest]") {
    Line line;
    line.until = TimePoint::max();
    SystemClock clock;
    ClaimStreams streams(clock);
    FakeRequest request{"POST", "/v1/executions"};
    const auto wait = std::make_shared<controller::ClaimWait>();
    wait->waitFor(std::make_shared<FakeStage>(line));
    api::Response response = streams.answer(
        request, "t", wait,
        [](const std::shared_ptr<api::Stream>& stream, const controller::ClaimPatience& patience) {
            patience.wait->forget();
            stream->send("event: started\n\n");
            stream->finish();
        });
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    REQUIRE(eventually([&] { return stream->text().find("event: waiting") != std::string::npos; }));
    CHECK(stream->text().find("\"place\":3,\"of\":7,\"estimateSeconds\":12") != std::string::npos);
    line.due = true;
    line.subscribers.notify();
    REQUIRE(eventually([&] { return stream->finished.load(); }));
    CHECK(stream->text().find("event: started") != std::string::npos);
}

TEST_CASE("a stream whose claim fails ends with the problem, and one that hangs up has left",
          "[unit][rest]") {
    Line line;
    line.until = TimePoint::max();
    SystemClock clock;
    ClaimStreams streams(clock);
    FakeRequest request{"POST", "/v1/executions"};
    const auto begin = [&](const std::shared_ptr<FakeStream>& stream) {
        auto wait = std::make_shared<controller::ClaimWait>();
        wait->waitFor(std::make_shared<FakeStage>(line));
        api::Response response = streams.answer(
            request, "t", std::move(wait),
            [](const std::shared_ptr<api::Stream>&, const controller::ClaimPatience&) {
                throw Error(ErrorCode::PoolExhausted, "none came free");
            });
        std::get<api::StreamStarter>(response.body)(stream);
    };
    const auto gone = std::make_shared<FakeStream>();
    begin(gone);
    gone->cut();
    CHECK(eventually([&] { return line.left == 1; }));
    const auto stream = std::make_shared<FakeStream>();
    begin(stream);
    line.due = true;
    line.subscribers.notify();
    REQUIRE(eventually([&] { return stream->finished.load(); }));
    CHECK(stream->text().find("event: problem") != std::string::npos);
    CHECK(stream->text().find("POOL_EXHAUSTED") != std::string::npos);
    CHECK(eventually([&] { return line.left == 2; }));
}

TEST_CASE("slow streamed claims of a tenant leave threads for those of others", "[unit][rest]") {
    Line now;
    now.due = true;
    now.until = TimePoint::max();
    SystemClock clock;
    std::counting_semaphore<> may_end(0);
    std::mutex mutex;
    std::vector<std::string> begun;
    const auto count = [&] {
        const std::lock_guard lock(mutex);
        return begun.size();
    };
    FakeRequest request{"POST", "/v1/executions"};
    std::vector<std::shared_ptr<FakeStream>> clients;
    ClaimStreams streams(clock);
    const auto begin = [&](const std::string& tenant, Line& line) {
        auto wait = std::make_shared<controller::ClaimWait>();
        wait->waitFor(std::make_shared<FakeStage>(line));
        api::Response response =
            streams.answer(request, tenant, std::move(wait),
                           [&, tenant](const std::shared_ptr<api::Stream>& stream,
                                       const controller::ClaimPatience& patience) {
                               patience.wait->forget();
                               {
                                   const std::lock_guard lock(mutex);
                                   begun.push_back(tenant);
                               }
                               may_end.acquire();
                               stream->finish();
                           });
        clients.push_back(std::make_shared<FakeStream>());
        std::get<api::StreamStarter>(response.body)(clients.back());
    };
    // One tenant's claims are slow, and more than there are threads. Its neighbour comes last.
    for (int i = 0; i < 6; ++i) begin("a", now);
    REQUIRE(eventually([&] { return count() == 2; }));
    begin("b", now);
    REQUIRE(eventually([&] { return count() == 3; }));
    CHECK(begun.back() == "b");
    may_end.release(16);
    CHECK(eventually([&] { return count() == 7; }));
}
