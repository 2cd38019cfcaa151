#include "base/Units.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace std::chrono_literals;

TEST_CASE("memory is rounded for people", "[unit][base]") {
    CHECK(formatSize(0) == "0 B");
    CHECK(formatSize(1000) == "1000 B");
    CHECK(formatSize(1536) == "1.5 KiB");
    CHECK(formatSize(67'649'536) == "64.5 MiB");
    CHECK(formatSize(1023.0 * 1024 * 1024) == "1023 MiB");
    CHECK(formatSize(85'520'809'984) == "79.6 GiB");
    CHECK(formatSize(80.0 * (1 << 30)) == "80 GiB");
}

TEST_CASE("sizes are read with their units and written back", "[unit][base]") {
    CHECK(parseBytes("4096") == 4096);
    CHECK(parseBytes("512Mi") == 512ULL << 20U);
    CHECK(parseBytes("1.5Gi") == 3ULL << 29U);
    CHECK(parseBytes("64M") == 64'000'000);
    CHECK(parseBytes("1k") == 1000);
    CHECK(parseBytes("0") == 0);
    for (const char* bad :
         {"", "Mi", "-1", "1.5", "1Qi", "1 Mi", "1e3", "0x10", "9999999999Ti", "1MiB", " 1"}) {
        CAPTURE(bad);
        CHECK_FALSE(parseBytes(bad));
    }
    for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1024ULL, 3ULL << 29U, 5ULL << 40U}) {
        CHECK(parseBytes(formatBytes(bytes)) == bytes);
    }
    CHECK(formatBytes(512ULL << 20U) == "512Mi");
}

TEST_CASE("cores are read to the thousandth", "[unit][base]") {
    CHECK(parseMilliCpu("1") == 1000);
    CHECK(parseMilliCpu("0.5") == 500);
    CHECK(parseMilliCpu("500m") == 500);
    for (const char* bad : {"", "m", "-1", "0.0005", "1.5m", "1 m", "2000", "1c"}) {
        CAPTURE(bad);
        CHECK_FALSE(parseMilliCpu(bad));
    }
    int wrong = 0;
    for (std::uint32_t milli = 1; milli <= 9999; ++milli) {
        const std::string digits = std::to_string(10'000 + milli);
        wrong += parseMilliCpu(digits.substr(1, 1) + "." + digits.substr(2)) == milli ? 0 : 1;
        wrong += parseMilliCpu(formatMilliCpu(milli)) == milli ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("durations are read in parts and written back", "[unit][base]") {
    CHECK(parseDuration("0") == 0ms);
    CHECK(parseDuration("250ms") == 250ms);
    CHECK(parseDuration("1h30m") == 90min);
    CHECK(parseDuration("2d") == 48h);
    CHECK(parseDuration("1.5s") == 1500ms);
    for (const char* bad : {"", "5", "-1s", "s", "1x", "1h 2m", "99999d", "1e9s"}) {
        CAPTURE(bad);
        CHECK_FALSE(parseDuration(bad));
    }
    for (const std::chrono::milliseconds each : {0ms, 1ms, 1500ms, 90'000ms, 7'200'000ms}) {
        CHECK(parseDuration(formatDuration(each)) == each);
    }
}

TEST_CASE("file modes are octal digits, up to 0777 when read", "[unit][base]") {
    CHECK(parseFileMode("0644") == 0644U);
    CHECK(parseFileMode("755") == 0755U);
    for (const char* bad : {"", "7", "64", "0888", "1777", "00644", "-644", "0x1f", "644 "}) {
        INFO(bad);
        CHECK_FALSE(parseFileMode(bad));
    }
    CHECK(formatFileMode(0644) == "0644");
    CHECK(formatFileMode(04755) == "4755");
}
