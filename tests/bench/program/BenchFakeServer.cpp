#include "tests/bench/program/BenchFakeServer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "api/serve/process/ProgramPath.h"
#include "base/Clock.h"
#include "base/Error.h"
#include "base/host/Instance.h"
#include "tests/bench/program/measure/BenchStop.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kMostWait{10};
constexpr int kServerPollMillis = 100;
constexpr std::size_t kMostOutput = 64U << 10U;

/// Returns the path of the server that was built with this program.
std::string fakeBeside() {
    const std::string own = programPath();
    return own.substr(0, own.rfind('/') + 1) + "hearth-fake";
}

}  // namespace

std::string greetedUrl(const std::string& output) {
    const std::size_t line = output.find("  REST ");
    if (line == std::string::npos) return {};
    const std::size_t begin = output.find("http://", line);
    const std::size_t end = output.find("/v1", begin == std::string::npos ? line : begin);
    if (begin == std::string::npos || end == std::string::npos) return {};
    return output.substr(begin, end - begin);
}

BenchFakeServer::BenchFakeServer() {
    if (::geteuid() != 0) {
        throw Error(ErrorCode::Unsupported, "--fake-pools starts a server, which needs root")
            .hint("start it as root, or leave --fake-pools out");
    }
    std::string directory =
        (std::filesystem::temp_directory_path() / "hearth-bench-XXXXXX").string();
    if (::mkdtemp(directory.data()) == nullptr) throwErrno("mkdtemp", directory);
    data_ = directory;
    try {
        // The server gives up root and must still get in.
        if (::chmod(data_.c_str(), 0711) != 0) throwErrno("chmod", data_);
        start();
        waitUntilServing();
    } catch (...) {
        end();
        throw;
    }
}

BenchFakeServer::~BenchFakeServer() {
    end();
}

void BenchFakeServer::start() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throwErrno("pipe2", "server");
    output_ = Fd(ends[0]);
    const Fd writer(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
    posix_spawnattr_t attributes;  // another group than the terminal's: Ctrl-C is for the bench
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> words = {fakeBeside(),  "--user",       "nobody",      "--listen",
                                      "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data-dir",
                                      data_,         "--log-level",  "error"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // The caller's settings for a server are not for this one.
    std::array<char*, 1> environment{nullptr};
    const int error =
        ::posix_spawn(&child_, argv[0], &actions, &attributes, argv.data(), environment.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        child_ = -1;
        throwErrno(error, "posix_spawn", words[0]);
    }
}

void BenchFakeServer::waitUntilServing() {
    const SystemClock clock;
    const TimePoint limit = clock.now() + kMostWait;
    std::string output;
    while (clock.now() < limit && output.size() < kMostOutput) {
        BenchStop::check();
        pollfd wait{output_.get(), POLLIN, 0};
        if (::poll(&wait, 1, kServerPollMillis) <= 0) continue;
        std::array<char, 4096> piece{};
        const ssize_t got = ::read(output_.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;  // the server has ended
        output.append(piece.data(), static_cast<std::size_t>(got));
        url_ = greetedUrl(output);
        if (!url_.empty()) return;
    }
    throw Error(ErrorCode::Unavailable,
                "the server with fake sandboxes does not serve: " +
                    output.substr(output.size() - std::min<std::size_t>(output.size(), 500)))
        .hint("try `hearth-fake` by hand, or leave --fake-pools out");
}

void BenchFakeServer::end() noexcept {
    if (child_ > 0) {
        ::kill(child_, SIGTERM);
        int status = 0;
        bool gone = false;
        for (int i = 0; i < 100 && !gone; ++i) {
            gone = ::waitpid(child_, &status, WNOHANG) == child_;
            if (!gone) ::usleep(kServerPollMillis * 1000);
        }
        if (!gone) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, &status, 0);
        }
        child_ = -1;
    }
    output_.reset();
    if (data_.empty()) return;
    std::error_code ignored;  // a leftover in /tmp harms nobody
    try {
        std::filesystem::remove_all(openInstance(data_).run_dir, ignored);
    } catch (const std::exception&) {
        url_.clear();  // it has no run_dir yet
    }
    std::filesystem::remove_all(data_, ignored);
    data_.clear();
}

}  // namespace hearth::cli
