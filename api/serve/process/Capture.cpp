#include "api/serve/process/Capture.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/Error.h"
#include "base/Fd.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxText = 65536;

/// posix_spawn's list of actions on the child's descriptors.
class FileActions {
public:
    FileActions() { ::posix_spawn_file_actions_init(&actions_); }
    ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    posix_spawn_file_actions_t* get() { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::optional<Captured> capture(const std::vector<std::string>& arguments) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throwErrno("pipe2");
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    FileActions actions;
    ::posix_spawn_file_actions_adddup2(actions.get(), writer.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));  // exec's type; exec writes nothing
    }
    argv.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
    if (error == ENOENT || error == EACCES) return std::nullopt;
    if (error != 0) throwErrno(error, "posix_spawnp", arguments[0]);
    writer.reset();
    Captured captured;
    std::array<char, 4096> piece{};
    while (true) {
        const ssize_t got = ::read(reader.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (captured.text.size() < kMaxText) {
            captured.text.append(piece.data(), static_cast<std::size_t>(got));
        }
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    captured.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return captured;
}

}  // namespace hearth::cli
