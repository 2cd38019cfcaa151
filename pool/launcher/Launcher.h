#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/Fd.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/launcher/BackgroundPriority.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/SandboxOperations.h"
#include "pool/launcher/protocol/LauncherMessages.h"

namespace hearth::pool::launcher {

/// The loop of the privileged process. It reads requests, runs each in a child of its own (so that
/// a hanging mount or runtime stops nothing else), kills those past their deadline, and reaps. One
/// thread. It ends when the server's end of the socket closes, after its operations have ended.
class Launcher {
public:
    Launcher(const LauncherOptions& options, Fd socket);

    /// Returns when the server is gone.
    void run();

private:
    using Time = std::chrono::steady_clock::time_point;

    struct Job {
        Request request;
        /// For a sweep: the sandboxes that exist at its start. It ignores later ones.
        std::set<SandboxId> present = {};
        Fd fd;  ///< the descriptor that came with the request
        Time accepted{};
        /// Set if the request has already failed and this job only cleans up after it.
        std::optional<Reply> failed;
    };
    struct Running {
        Job job;
        Time deadline;
        bool killed = false;
    };

    void prepare();
    void receive();
    void accept(Job job);
    void startJobs();
    /// Returns the operation that runs now; null if it could not be begun.
    const Running* start(Job job);
    void reap();
    void finish(Job job, int status, bool killed);
    void killLate();
    /// Makes work that nobody waits for give way to requests, but not for long.
    void hurryLate();
    /// True if the job gives way to requests now.
    bool yields(const Job& job) const;
    /// Begins to remove unused trees when it is time; in a child, without an answer.
    void collectImages();
    int nextTimeout() const;
    void reply(const Reply& reply) const;
    /// In the child: does the job and answers.
    [[noreturn]] void perform(const Job& job, pid_t parent);
    Json result(const Job& job);

    LauncherOptions options_;
    SandboxPaths names_;
    Fd socket_;
    Fd signals_;
    Fd lock_;
    std::optional<SandboxOperations> sandboxes_;
    std::optional<BackgroundPriority> background_;
    std::deque<Job> waiting_;
    std::map<pid_t, Running> running_;
    /// Made by this launcher and not yet ordered to be destroyed: a sweep never takes these.
    std::set<SandboxId> born_;
    bool hurried_ = false;  ///< an operation has given way for long enough; now none does
    std::optional<Time> closing_;
    Time collect_at_{};  // at once
    pid_t collector_ = -1;
};

}  // namespace hearth::pool::launcher
