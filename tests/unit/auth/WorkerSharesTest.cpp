#include <optional>
#include <vector>

#include "api/auth/WorkerShares.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::test;

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

TEST_CASE("a tenant's own work leaves its operators their places", "[unit][auth]") {
    const auth::WorkerShares shares(1);
    const std::shared_ptr<void> work = shares.take("a");
    std::vector<std::shared_ptr<void>> operators;
    for (std::size_t i = 0; i < auth::WorkerShares::kReserved; ++i) {
        operators.push_back(shares.takeAsOperator("a"));
    }
    CHECK(codeOf([&] { shares.takeAsOperator("a"); }) == ErrorCode::RateLimited);
    operators.pop_back();
    CHECK(codeOf([&] { shares.take("a"); }) == ErrorCode::RateLimited);  // not for its work
    CHECK(shares.takeAsOperator("a"));
}

TEST_CASE("operators have the share of their tenant too", "[unit][auth]") {
    const auth::WorkerShares shares(2);
    std::vector<std::shared_ptr<void>> operators;
    for (std::size_t i = 0; i < auth::WorkerShares::kReserved + 2; ++i) {
        operators.push_back(shares.takeAsOperator("a"));
    }
    CHECK(codeOf([&] { shares.takeAsOperator("a"); }) == ErrorCode::RateLimited);
    operators.clear();
    CHECK(shares.take("a"));
}
