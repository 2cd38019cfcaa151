#include <optional>
#include <vector>

#include "api/auth/WorkerShares.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/Support.h"

using namespace hearth;
using hearth::test::codeOf;
using hearth::test::errorOf;
using hearth::test::FakeRequest;

namespace {

constexpr auto kOperators = auth::WorkerShares::Kind::Operators;

}  // namespace

TEST_CASE("a tenant gets its share of the workers, and another one still gets its own",
          "[unit][auth]") {
    std::optional<auth::WorkerShares> shares(2);
    const std::shared_ptr<void> first = shares->take("a");
    std::shared_ptr<void> second = shares->take("a");
    const Error refused = errorOf([&] { shares->take("a"); });
    CHECK(refused.code() == ErrorCode::RateLimited);
    std::vector<std::shared_ptr<void>> others{shares->take("b"), shares->take("b")};
    second.reset();
    second = shares->take("a");
    CHECK(codeOf([&] { shares->take("a"); }) == ErrorCode::RateLimited);
    shares.reset();  // tickets may outlive it
}

TEST_CASE("a tenant's requests leave places for its operators", "[unit][auth]") {
    const auth::WorkerShares shares(1);
    const std::shared_ptr<void> work = shares.take("a");
    std::vector<std::shared_ptr<void>> operators;
    for (std::size_t i = 0; i < auth::WorkerShares::kReserved; ++i) {
        operators.push_back(shares.take("a", kOperators));
    }
    CHECK(codeOf([&] { shares.take("a", kOperators); }) == ErrorCode::RateLimited);
    operators.pop_back();
    CHECK(codeOf([&] { shares.take("a"); }) == ErrorCode::RateLimited);  // kept for operators
    CHECK(shares.take("a", kOperators));
}

TEST_CASE("operators may use reserved places and their tenant's share", "[unit][auth]") {
    const auth::WorkerShares shares(2);
    std::vector<std::shared_ptr<void>> operators;
    for (std::size_t i = 0; i < auth::WorkerShares::kReserved + 2; ++i) {
        operators.push_back(shares.take("a", kOperators));
    }
    CHECK(codeOf([&] { shares.take("a", kOperators); }) == ErrorCode::RateLimited);
    operators.clear();
    CHECK(shares.take("a"));
}

TEST_CASE(
    "greedy tenants leave workers for the next, for operators and for requests without tenant",
    "[unit][auth]") {
    const auth::WorkerShares shares(auth::WorkerShares::boundsOf(128));
    std::vector<std::shared_ptr<void>> held;
    const auto most = [&](const std::string& tenant) {
        const std::size_t before = held.size();
        while (!codeOf([&] { held.push_back(shares.take(tenant)); })) continue;
        return held.size() - before;
    };
    CHECK(most("a") == 48);
    CHECK(most("b") == 32);
    CHECK(most("c") == 16);
    CHECK(most("d") == 8);
    held.push_back(shares.take("e"));
    const Error refused = errorOf([&] { shares.take("b"); });
    CHECK(std::string(refused.what()).find("has 32 requests under way") != std::string::npos);
    for (int tenant = 0; tenant < 200; ++tenant) most(std::to_string(tenant));
    CHECK(held.size() == 112);
    CHECK(shares.take("a", kOperators));
    for (int tenant = 0; tenant < 200; ++tenant) {
        while (!codeOf([&] { held.push_back(shares.take(std::to_string(tenant), kOperators)); })) {
            continue;
        }
    }
    CHECK(held.size() == 120);
}

TEST_CASE("a server with few workers lets a tenant have four", "[unit][auth]") {
    for (const std::size_t workers : {1U, 4U, 8U}) {
        const auth::WorkerShares shares(auth::WorkerShares::boundsOf(workers));
        std::vector<std::shared_ptr<void>> held;
        while (!codeOf([&] { held.push_back(shares.take("a")); })) continue;
        CHECK(held.size() == 4);
        held.clear();
        while (!codeOf([&] { held.push_back(shares.take("a", kOperators)); })) continue;
        CHECK(held.size() >= 7);
    }
}

namespace {

constexpr auto kDone = [] {
    api::Response response;
    response.status = 299;
    return response;
};

/// Returns a response that suspends the request until the test resumes it.
api::Response waitsForNews() {
    api::Response response;
    response.body = api::Suspension{.subscribe = [](const auto&) { return nullptr; },
                                    .ready = [] { return false; },
                                    .resume = kDone};
    return response;
}

/// A stand-in for the front's handling of a suspended request.
class Waiting {
public:
    explicit Waiting(api::Response response)
        : suspension_(std::get<api::Suspension>(std::move(response.body))) {
        subscription_ = suspension_.subscribe([this] { woken_ = true; });
    }
    bool woken() const { return woken_; }
    bool ready() const { return suspension_.ready(); }
    TimePoint until() const { return suspension_.until; }
    api::Response resume() {
        subscription_.reset();
        return std::move(suspension_).resume();
    }

private:
    api::Suspension suspension_;
    std::shared_ptr<void> subscription_;
    bool woken_ = false;
};

}  // namespace

TEST_CASE("a request that was suspended goes on in its tenant's share, and waits for it",
          "[unit][auth]") {
    const auth::WorkerShares shares(1);
    FakeRequest request("POST", "/");
    Waiting suspended(shares.answer(request, "a", waitsForNews));
    std::shared_ptr<void> other = shares.take("a");  // a suspended request holds no place
    CHECK(codeOf([&] { shares.answer(request, "a", kDone); }) == ErrorCode::RateLimited);
    Waiting in_line(suspended.resume());
    CHECK_FALSE(in_line.ready());
    CHECK(in_line.until() == TimePoint::max());
    other.reset();
    CHECK(in_line.woken());
    CHECK(in_line.ready());
    CHECK(codeOf([&] { shares.take("a"); }) == ErrorCode::RateLimited);  // the request has it
    api::Response answer = in_line.resume();
    CHECK(answer.status == 299);
    CHECK(answer.ticket);
    CHECK(codeOf([&] { shares.take("a"); }) == ErrorCode::RateLimited);
    answer.ticket.reset();
    CHECK(shares.take("a"));
}

TEST_CASE("a client that goes while its request waits for a place gives it to the next",
          "[unit][auth]") {
    const auth::WorkerShares shares(1);
    FakeRequest request("POST", "/");
    Waiting first(shares.answer(request, "a", waitsForNews));
    Waiting second(shares.answer(request, "a", waitsForNews));
    std::shared_ptr<void> other = shares.take("a");
    auto gone = std::make_unique<Waiting>(first.resume());
    Waiting next(second.resume());
    other.reset();
    CHECK(gone->ready());
    CHECK_FALSE(next.ready());
    gone.reset();
    CHECK(next.ready());
    CHECK(next.resume().status == 299);
    CHECK(shares.take("a"));
}

TEST_CASE("a tenant without a worker waits briefly if other tenants hold all workers",
          "[unit][auth]") {
    const auth::WorkerShares shares({.all = 4, .of_tenant = 3});
    std::vector<std::shared_ptr<void>> held{shares.take("a"), shares.take("a"), shares.take("b"),
                                            shares.take("c")};
    FakeRequest request("GET", "/");
    Waiting served(shares.answer(request, "d", kDone));
    Waiting late(shares.answer(request, "e", kDone));
    CHECK(served.until() == request.startedAt() + auth::WorkerShares::kPatience);
    CHECK_FALSE(served.ready());
    held.pop_back();
    CHECK(served.ready());
    const api::Response answer = served.resume();
    CHECK(answer.status == 299);
    CHECK_FALSE(late.ready());
    CHECK(codeOf([&] { late.resume(); }) == ErrorCode::RateLimited);
}

TEST_CASE("a server that stops lets waiting requests go on without a place", "[unit][auth]") {
    const auth::WorkerShares shares(1);
    FakeRequest request("POST", "/");
    Waiting suspended(shares.answer(request, "a", waitsForNews));
    Waiting another(shares.answer(request, "a", waitsForNews));
    const std::shared_ptr<void> other = shares.take("a");
    Waiting in_line(another.resume());
    request.stop.request_stop();
    CHECK(suspended.resume().status == 299);
    CHECK(in_line.resume().status == 299);
}
