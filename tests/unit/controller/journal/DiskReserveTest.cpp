#include "controller/journal/DiskReserve.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

AskDisk disk(std::uint64_t capacity, std::uint64_t free) {
    return [capacity, free] { return DiskSpace{capacity, free}; };
}

}  // namespace

TEST_CASE("the reserve is at most a tenth of the disk", "[unit][controller]") {
    CHECK(DiskReserve(disk(100 * kGiB, 255 * kMiB), 256 * kMiB).low());
    CHECK_FALSE(DiskReserve(disk(100 * kGiB, 256 * kMiB), 256 * kMiB).low());
    CHECK_FALSE(DiskReserve(disk(100 * kMiB, 11 * kMiB), 256 * kMiB).low());
    CHECK(DiskReserve(disk(100 * kMiB, 9 * kMiB), 256 * kMiB).low());
    CHECK_FALSE(DiskReserve(disk(100 * kMiB, 0), 0).low());
    CHECK_FALSE(DiskReserve([] { return std::nullopt; }, kGiB).low());  // the space is unknown
    TempDir dir;
    REQUIRE(diskSpaceAt(dir.path()));
    CHECK(diskSpaceAt(dir.path())->capacity > diskSpaceAt(dir.path())->free);
    CHECK_FALSE(diskSpaceAt(dir.file("none")));
}

TEST_CASE("workspaces are promised the disk less its reserve, times the over-commit",
          "[unit][controller]") {
    const DiskBudget budget(disk(10 * kGiB, 9 * kGiB), 256 * kMiB, 4);
    const std::uint64_t most = (10 * kGiB - 256 * kMiB) * 4;
    CHECK(budget.roomFor(kGiB, 0).most == most);
    CHECK(budget.roomFor(kGiB, 0).refusal.empty());
    CHECK(budget.roomFor(kGiB, most - kGiB).refusal.empty());
    CHECK(budget.roomFor(kGiB, most - kGiB + 1).refusal ==
          "a workspace of 1Gi does not fit: 38Gi of the disk's 39Gi are promised (10Gi less a "
          "reserve of 256Mi, times 4)");
    CHECK_FALSE(budget.roomFor(UINT64_MAX, 0).refusal.empty());
    CHECK(budget.roomFor(0, most).refusal.empty());  // it takes no room
    // Without a disk for workspaces, or with one of unknown size, everything fits.
    CHECK(DiskBudget().roomFor(kGiB, UINT64_MAX).refusal.empty());
    CHECK(DiskBudget([] { return std::nullopt; }, 0, 1).roomFor(kGiB, kGiB).refusal.empty());
}

TEST_CASE("a workspace must fit into what is free, with the reserve left", "[unit][controller]") {
    const auto refusal = [](std::uint64_t free) {
        return DiskBudget(disk(10 * kGiB, free), 256 * kMiB, 4).roomFor(kGiB, 0).refusal;
    };
    CHECK(refusal(kGiB + 256 * kMiB).empty());
    CHECK(refusal(kGiB) ==
          "a workspace of 1Gi does not fit: the disk has 1Gi free, and the last 256Mi are kept for "
          "the server's state");
    CHECK_FALSE(refusal(0).empty());
}
