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
