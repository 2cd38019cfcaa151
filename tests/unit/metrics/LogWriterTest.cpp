#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>

#include "metrics/Log.h"
#include "metrics/LogWriter.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::metrics;
using namespace hearth::test;

namespace {

/// A pipe or socket whose reader reads only when the test does.
struct Reader {
    explicit Reader(bool socket = false) {
        std::array<int, 2> ends{};
        const int made = socket ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())
                                : ::pipe2(ends.data(), O_CLOEXEC);
        REQUIRE(made == 0);
        out = Fd(ends[0]);
        in = Fd(ends[1]);
    }
    /// Reads until nothing has come for 300 ms.
    std::string read() const {
        std::string text;
        std::array<char, 65536> buffer{};
        for (pollfd ready{out.get(), POLLIN, 0}; ::poll(&ready, 1, 300) > 0;) {
            const ssize_t n = ::read(out.get(), buffer.data(), buffer.size());
            if (n <= 0) break;
            text.append(buffer.data(), static_cast<std::size_t>(n));
        }
        return text;
    }

    Fd out;
    Fd in;
};

std::vector<std::string> linesOf(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::uint64_t dropped(Metrics& metrics) {
    const std::string text = metrics.render();
    const std::string name = "\nhearth_log_lines_dropped_total ";
    return std::stoull(text.substr(text.find(name) + name.size()));
}

/// Returns the numbers of the lines "n=…" in their order. Adds the lines lost in gaps to `gaps`.
std::vector<int> numbers(const std::string& text, std::uint64_t& gaps) {
    std::vector<int> found;
    for (const std::string& line : linesOf(text)) {
        if (const std::size_t at = line.find(" n="); at != std::string::npos) {
            found.push_back(std::stoi(line.substr(at + 3)));
        } else if (const std::size_t gap = line.find("log.dropped lines=");
                   gap != std::string::npos) {
            gaps += std::stoull(line.substr(gap + 18));
        }
    }
    return found;
}

}  // namespace

TEST_CASE("a stalled reader of the log blocks no caller; dropped lines are counted and reported",
          "[unit][metrics]") {
    for (const bool socket : {false, true}) {
        const Reader reader(socket);
        Metrics metrics;
        const LogOutput output(reader.in.get());
        LogWriter writer(output, metrics, 64U << 10U);
        Log log(writer);
        const int count = 20'000;  // far more than the kernel and the writer hold
        for (int i = 0; i < count; ++i) log.info("e", {{"n", i}});
        const std::uint64_t lost = dropped(metrics);
        CHECK(lost > 0);
        std::uint64_t gaps = 0;
        std::string text = reader.read();
        log.info("e", {{"n", count}});
        text += reader.read();
        const std::vector<int> got = numbers(text, gaps);
        CHECK(gaps == lost);
        CHECK(got.size() + lost == count + 1);
        CHECK(std::is_sorted(got.begin(), got.end()));
        CHECK(got.back() == count);
        CHECK(dropped(metrics) == lost);
    }
}

TEST_CASE("a log that flows is written before its caller goes on", "[unit][metrics]") {
    const Reader reader;
    Metrics metrics;
    const LogOutput output(reader.in.get());
    LogWriter writer(output, metrics);
    Log log(writer, LogLevel::Warn);
    log.info("not.shown");
    log.warn("shown");
    std::array<char, 256> buffer{};
    const ssize_t n = ::read(reader.out.get(), buffer.data(), buffer.size());
    REQUIRE(n > 0);
    CHECK(std::string(buffer.data(), static_cast<std::size_t>(n)).substr(27) ==
          " level=warn event=shown\n");
    CHECK((::fcntl(reader.in.get(), F_GETFL) & O_NONBLOCK) == 0);  // other processes use it too
}

TEST_CASE("at its end a log writer gives a stalled reader a moment only", "[unit][metrics]") {
    const Reader reader;
    Metrics metrics;
    const LogOutput output(reader.in.get());
    {
        LogWriter writer(output, metrics);
        Log log(writer);
        for (int i = 0; i < 3'000; ++i) log.info("e", {{"n", i}});
        CHECK(dropped(metrics) == 0);
    }
    CHECK(dropped(metrics) > 0);
}

TEST_CASE("a log without a writer drops lines that a stalled reader does not take",
          "[unit][metrics]") {
    const Reader reader;
    Log log(reader.in.get());
    for (int i = 0; i < 10'000; ++i) log.info("e", {{"n", i}});
    std::uint64_t gaps = 0;
    const std::vector<int> got = numbers(reader.read(), gaps);
    CHECK_FALSE(got.empty());
    CHECK(got.size() < 10'000);
}

TEST_CASE("a log without a reader blocks no caller", "[unit][metrics]") {
    std::signal(SIGPIPE, SIG_IGN);
    Reader reader;
    Metrics metrics;
    const LogOutput output(reader.in.get());
    LogWriter writer(output, metrics);
    Log log(writer);
    reader.out.reset();
    for (int i = 0; i < 100; ++i) log.info("e", {{"n", i}});
    CHECK(dropped(metrics) == 100);
}
