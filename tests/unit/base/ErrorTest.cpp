#include <cerrno>
#include <set>
#include <system_error>

#include "base/Error.h"
#include "tests/support/Support.h"

using namespace hearth;

TEST_CASE("every code has a name of its own and an HTTP status", "[unit][base]") {
    std::set<std::string_view> names;
    const int last = static_cast<int>(ErrorCode::DiskFull);
    for (int i = 0; i <= last; ++i) {
        const auto code = static_cast<ErrorCode>(i);
        const std::string_view name = errorCodeName(code);
        CHECK_FALSE(name.empty());
        CHECK(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos);
        names.insert(name);
        CHECK(errorCodeStatus(code) >= 400);
        CHECK(errorCodeStatus(code) < 600);
    }
    CHECK(names.size() == static_cast<std::size_t>(last) + 1);
    CHECK(errorCodeName(ErrorCode::DiskFull) == "DISK_FULL");
    CHECK(errorCodeStatus(ErrorCode::DiskFull) == 507);
    CHECK(errorCodeStatus(ErrorCode::PoolExhausted) == 429);
    CHECK(errorCodeRetryable(ErrorCode::PoolExhausted));
    CHECK_FALSE(errorCodeRetryable(ErrorCode::InvalidArgument));
}

TEST_CASE("an error carries the message, hint and fields for the client", "[unit][base]") {
    Error error(ErrorCode::Gone, "it is gone");
    error.hint("make another").retryAfter(std::chrono::seconds(3)).field("/a", "bad");
    error.ended("idle", "2026-01-01T00:00:00.000Z");
    CHECK(error.what() == std::string("it is gone"));
    CHECK(error.hint() == "make another");
    CHECK(error.retryAfter() == std::chrono::seconds(3));
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].pointer == "/a");
    CHECK(error.endedReason() == "idle");
}

TEST_CASE("the error of a system call names the call and the path", "[unit][base]") {
    try {
        throwErrno(ENOENT, "open", "/some/path");
    } catch (const std::system_error& e) {
        CHECK(e.code() == std::errc::no_such_file_or_directory);
        CHECK(std::string(e.what()).find("open /some/path") != std::string::npos);
    }
}
