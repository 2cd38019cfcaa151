#include <atomic>
#include <catch2/catch.hpp>
#include <semaphore>

#include "api/http/TaskAnswer.h"
#include "api/rest/streams/ClaimStreams.h"
#include "api/rest/streams/ExecutionAnswer.h"
#include "base/Subscribers.h"
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
    TimePoint until{std::chrono::seconds(30)};
    Subscribers subscribers;
};

class Place final : public Waitable {
public:
    explicit Place(Line& line) : line_(line) {}
    ~Place() override { ++line_.left; }
    bool ready() const override { return line_.due; }
    TimePoint until() const override { return line_.until; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return line_.subscribers.add(std::move(wake));
    }
    std::optional<Progress> progress() const override {
        return Progress{"a sandbox of pool python", 3, 7, std::chrono::seconds(12)};
    }

private:
    Line& line_;
};

struct Claiming {
    Line line;
    FakeRequest request{"POST", "/v1/workspaces"};
    int served = 0;

    Task<api::Response> claim() {
        auto place = std::make_shared<Place>(line);
        co_await place;
        ++served;
        api::Response response;
        response.status = 201;
        co_return response;
    }
    api::Response start() { return api::answerOf(request, claim()); }
};

using ExecutionPtr = std::shared_ptr<controller::Execution>;

Task<ExecutionPtr> startAfter(Line& line, std::optional<Error> refusal = {}) {
    auto place = std::make_shared<Place>(line);
    co_await place;
    if (refusal) throw Error(*refusal);
    co_return std::make_shared<FakeExecution>();
}

}  // namespace

TEST_CASE("a task that need not wait is answered at once", "[unit][rest]") {
    Claiming claiming;
    claiming.line.due = true;
    CHECK(claiming.start().status == 201);
}

TEST_CASE("a task that has to wait is suspended, and goes on when its turn has come",
          "[unit][rest]") {
    Claiming claiming;
    api::Response response = claiming.start();
    auto& suspension = std::get<api::Suspension>(response.body);
    CHECK(suspension.until == TimePoint{std::chrono::seconds(30)});
    CHECK_FALSE(suspension.ready());
    int woken = 0;
    const auto subscription = suspension.subscribe([&woken] { ++woken; });
    claiming.line.due = true;
    claiming.line.subscribers.notify();
    CHECK(woken == 1);
    CHECK(suspension.ready());
    CHECK(suspension.resume().status == 201);
    CHECK(claiming.line.left == 1);
}

TEST_CASE("a task whose client has gone is destroyed, and does not go on", "[unit][rest]") {
    Claiming hung_up;
    hung_up.start();  // the front drops the suspension
    CHECK(hung_up.line.left == 1);

    Claiming late;
    api::Response response = late.start();
    late.line.due = true;
    late.request.gone = true;
    CHECK(codeOf([&] { std::get<api::Suspension>(response.body).resume(); }) ==
          ErrorCode::Unavailable);
    CHECK(late.served == 0);
}

TEST_CASE("a wait for an execution reports a sandbox that does not answer", "[unit][rest]") {
    const ManualClock clock;
    FakeRequest request{"POST", "/v1/executions"};
    const auto execution = std::make_shared<FakeExecution>();
    const auto make = [] { return api::Response{}; };
    const auto answer = [&] {
        return api::answerOf(request, whenFinished(clock, execution, TimePoint::max(), make), make);
    };
    api::Response stopping = answer();
    request.stop.request_stop();
    CHECK(std::get<api::Suspension>(stopping.body).resume().status == 200);  // it continues
    request.stop = {};
    api::Response response = answer();
    auto& suspension = std::get<api::Suspension>(response.body);
    CHECK_FALSE(suspension.ready());
    int woken = 0;
    const auto subscription = suspension.subscribe([&woken] { ++woken; });
    execution->fallSilent();
    CHECK(woken == 1);
    CHECK(suspension.ready());
    CHECK(codeOf([&] { suspension.resume(); }) == ErrorCode::Deadline);
    CHECK(codeOf(answer) == ErrorCode::Deadline);
    execution->end("ok", 0);  // it has answered meanwhile
    CHECK(answer().status == 200);
}

TEST_CASE("a task that still waits is refused when the server stops, or has no room for it",
          "[unit][rest]") {
    Claiming claiming;
    api::Response response = claiming.start();
    const Error refused = errorOf([&] { std::get<api::Suspension>(response.body).give_up(); });
    CHECK(refused.code() == ErrorCode::RateLimited);
    CHECK(refused.retryAfter() > std::chrono::seconds(0));
    claiming.request.stop.request_stop();
    CHECK(codeOf([&] { std::get<api::Suspension>(response.body).resume(); }) ==
          ErrorCode::Unavailable);
}

TEST_CASE("a stream sends the place of its claim, then the events of the execution",
          "[unit][rest]") {
    Line line;
    line.until = TimePoint::max();
    SystemClock clock;
    ClaimStreams streams(clock);
    FakeRequest request{"POST", "/v1/executions"};
    Task<ExecutionPtr> start = startAfter(line);
    REQUIRE_FALSE(start.run());
    api::Response response =
        streams.answer(request, "t", std::move(start),
                       [](const ExecutionPtr&, const std::shared_ptr<api::Stream>& stream) {
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

TEST_CASE("a stream whose claim fails ends with the problem, and a hang-up cancels the claim",
          "[unit][rest]") {
    Line line;
    line.until = TimePoint::max();
    SystemClock clock;
    ClaimStreams streams(clock);
    FakeRequest request{"POST", "/v1/executions"};
    const auto begin = [&](const std::shared_ptr<FakeStream>& stream) {
        api::Response response = streams.answer(
            request, "t", startAfter(line, Error(ErrorCode::PoolExhausted, "none came free")),
            [](const ExecutionPtr&, const std::shared_ptr<api::Stream>&) {});
        std::get<api::StreamStarter>(response.body)(stream);
    };
    const auto gone = std::make_shared<FakeStream>();
    begin(gone);
    REQUIRE(eventually([&] { return gone->text().find("event: waiting") != std::string::npos; }));
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
    const auto begin = [&](const std::string& tenant) {
        api::Response response = streams.answer(
            request, tenant, startAfter(now),
            [&, tenant](const ExecutionPtr&, const std::shared_ptr<api::Stream>& stream) {
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
    for (int i = 0; i < 6; ++i) begin("a");
    REQUIRE(eventually([&] { return count() == 2; }));
    begin("b");
    REQUIRE(eventually([&] { return count() == 3; }));
    CHECK(begun.back() == "b");
    may_end.release(16);
    CHECK(eventually([&] { return count() == 7; }));
}
