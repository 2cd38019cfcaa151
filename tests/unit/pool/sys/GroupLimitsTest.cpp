#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/Error.h"
#include "pool/sys/Files.h"
#include "pool/sys/GroupLimits.h"

namespace hearth::sys {
namespace {

namespace fs = std::filesystem;

/// The kernel's files of one group, in a separate directory. Unlike the kernel it takes any value,
/// and written text stands before the old text.
class Group {
public:
    explicit Group(bool unified) : unified_(unified) {
        char path[] = "/tmp/hearth-group-XXXXXX";
        REQUIRE(::mkdtemp(path) != nullptr);
        path_ = path;
        fs::create_directories(path_ + "/g");
        put("pids.max", "128\n");
        put("pids.current", "5\n");
        if (unified) {
            put("cpu.max", "200000 100000\n");
            put("memory.max", "536870912\n");
            put("memory.current", "60000000\n");
            put("memory.stat", "anon 1\nactive_file 10000000\ninactive_file 10000000\n");
            put("memory.events", "oom 0\noom_kill 3\n");
        } else {
            put("cpu.cfs_quota_us", "200000\n");
            put("cpu.cfs_period_us", "100000\n");
            put("memory.limit_in_bytes", "536870912\n");
            put("memory.memsw.limit_in_bytes", "536870912\n");
            put("memory.usage_in_bytes", "60000000\n");
            put("memory.stat",
                "cache 1\ninactive_file 5\ntotal_active_file 10000000\n"
                "total_inactive_file 10000000\n");
        }
    }
    ~Group() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    void put(const std::string& file, const std::string& text) const {
        writeFile(path_ + "/g/" + file, text, 0600);
    }
    /// Returns the text: the last written one, then the end of a longer one before it.
    std::string at(const std::string& file) const {
        return readFile(path_ + "/g/" + file).value_or("none");
    }
    Cgroups cgroups() const {
        const std::string type = unified_ ? "cgroup2" : "cgroup";
        return Cgroups::parse("33 24 0:29 / " + path_ + "/ rw - " + type + " " + type +
                              " rw,cpu,memory,pids\n");
    }
    std::optional<LimitInUse> lower(const GroupLimits& wanted) const {
        return lowerLimits(cgroups(), "g", wanted);
    }
    ErrorCode refusal(const GroupLimits& wanted) const {
        try {
            lower(wanted);
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::Internal;
    }

private:
    bool unified_;
    std::string path_;
};

constexpr std::uint64_t kMiB = 1ULL << 20U;

}  // namespace

TEST_CASE("limits of a group are lowered in either version", "[unit][sys]") {
    const Group v1(false);
    CHECK_FALSE(v1.lower({500, 64 * kMiB, 32}));
    CHECK(v1.at("cpu.cfs_quota_us").starts_with("50000"));
    CHECK(v1.at("memory.limit_in_bytes").starts_with("67108864"));
    CHECK(v1.at("memory.memsw.limit_in_bytes").starts_with("67108864"));
    CHECK(v1.at("pids.max").starts_with("32"));

    const Group v2(true);
    CHECK_FALSE(v2.lower({10, 64 * kMiB, 32}));
    CHECK(v2.at("cpu.max").starts_with("1000 100000"));  // the kernel's minimum
    CHECK(v2.at("memory.max").starts_with("67108864"));
    CHECK(v2.at("pids.max").starts_with("32"));
}

TEST_CASE("a limit that a group already has is not written", "[unit][sys]") {
    for (const bool unified : {false, true}) {
        const Group group(unified);
        CHECK_FALSE(group.lower({2000, 512 * kMiB, 128}));
        CHECK(group.at("pids.max") == "128\n");
        CHECK(group.at(unified ? "cpu.max" : "cpu.cfs_quota_us") ==
              (unified ? "200000 100000\n" : "200000\n"));
        CHECK(group.at(unified ? "memory.max" : "memory.limit_in_bytes") == "536870912\n");
    }
}

TEST_CASE("a limit of a group is never raised, and nothing is lowered beside it", "[unit][sys]") {
    for (const bool unified : {false, true}) {
        const Group group(unified);
        for (const GroupLimits& wanted :
             {GroupLimits{2001, 64 * kMiB, 32}, GroupLimits{500, 512 * kMiB + 4096, 32},
              GroupLimits{500, 64 * kMiB, 129}}) {
            CHECK(group.refusal(wanted) == ErrorCode::Forbidden);
        }
        CHECK(group.at("pids.max") == "128\n");
        CHECK(group.at(unified ? "memory.max" : "memory.limit_in_bytes") == "536870912\n");
        // Nor is it raised to its former value.
        group.put("pids.max", "32\n");
        CHECK(group.refusal({2000, 512 * kMiB, 128}) == ErrorCode::Forbidden);
    }
    const Group without(true);
    without.put("cpu.max", "max 100000\n");
    without.put("memory.max", "max\n");
    without.put("pids.max", "max\n");
    CHECK_FALSE(without.lower({500, 64 * kMiB, 32}));
    CHECK(without.at("cpu.max").starts_with("50000 100000"));
}

TEST_CASE("a limit below the current use is reported, and not written if the kernel would kill",
          "[unit][sys]") {
    const Group v2(true);
    const auto memory = v2.lower({500, 32 * kMiB, 32});
    REQUIRE(memory);
    CHECK(memory->of == LimitInUse::Of::Memory);
    CHECK(memory->used == 60'000'000);
    CHECK(v2.at("memory.max") == "536870912\n");
    CHECK(memoryNeeded(v2.cgroups(), "g") == 40'000'000);  // without the memory of files
    CHECK(memoryNeeded(Group(false).cgroups(), "g") == 40'000'000);

    const auto processes = Group(false).lower({500, 64 * kMiB, 5});
    REQUIRE(processes);
    CHECK(processes->of == LimitInUse::Of::Processes);
    CHECK(processes->used == 5);
}

TEST_CASE("a missing group, or an invalid limit of a group, is reported", "[unit][sys]") {
    const Group group(true);
    CHECK_FALSE(memoryNeeded(group.cgroups(), "gone"));
    try {
        lowerLimits(group.cgroups(), "gone", {500, 64 * kMiB, 32});
        FAIL("it was lowered");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::NotFound);
    }
    group.put("pids.max", "12x\n");
    CHECK_THROWS_AS(group.lower({500, 64 * kMiB, 32}), std::runtime_error);
    CHECK_THROWS_AS(lowerLimits(Cgroups::parse(""), "g", {}), std::runtime_error);
}

}  // namespace hearth::sys
