#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pool/isolation/SandboxPaths.h"

namespace hearth::pool::launcher {

/// The container program's command line (runc's), and the files in its state directory. Only for a
/// process with one thread.
class OciCommand {
public:
    OciCommand(std::string program, const SandboxPaths& names)
        : program_(std::move(program)), names_(names) {}

    /// Makes the container from its bundle; its first process waits. `listen` becomes its
    /// descriptor 3. Returns its process id. Throws std::runtime_error with its message.
    pid_t create(const SandboxId& id, int listen) const;
    /// Lets the first process run.
    void start(const SandboxId& id) const;
    /// Removes a container whose processes have ended, after its poststop hooks.
    void forget(const SandboxId& id) const;

    struct State {
        pid_t pid = 0;
        std::uint64_t start_time = 0;
        bool started = false;
    };
    /// Returns the state that the program wrote; nullopt if it did not get that far.
    std::optional<State> state(const SandboxId& id) const;
    /// True if the container's first process is alive, and not another process with its number.
    bool alive(const SandboxId& id) const;

    /// The first line of `--version` and the text after "commit:", empty if it cannot be run.
    /// Asking takes some 7 ms, so the answer is kept in a file until the program's own file
    /// changes.
    struct Version {
        std::string version;
        std::string commit;
        std::string seccomp;  ///< version of its libseccomp, empty without
    };
    Version version() const;

private:
    void call(const SandboxId& id, const std::vector<std::string>& words, int listen) const;

    std::string program_;
    const SandboxPaths& names_;
};

}  // namespace hearth::pool::launcher
