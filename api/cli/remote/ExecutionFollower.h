#pragma once

#include <functional>
#include <string>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RunOutput.h"
#include "api/cli/remote/RunRequest.h"

namespace hearth::cli {

/// Callbacks for the progress of an execution; either may be empty.
struct Milestones {
    /// The server has sent the execution's id. Called for each event from then on.
    std::function<void(const std::string& execution)> named;
    /// The end has come, and nothing of it was printed yet.
    std::function<void()> ending;
};

/// Starts one execution and follows it to its end, over lost connections. Not thread-safe.
class ExecutionFollower {
public:
    ExecutionFollower(Remote& remote, RunOutput& output, Milestones milestones)
        : remote_(remote), output_(output), milestones_(std::move(milestones)) {}

    /// Blocks until the execution has ended, or its output is unheard(). Throws RemoteError if the
    /// server refuses it, and Error(Unavailable) if it never answered or did not come back.
    void follow(const RunRequest& request);
    /// The same for an existing execution, from the beginning of its kept output.
    void follow(const std::string& execution);

private:
    void reconnect(const http::ClientRequest& post);
    void attempt(const http::ClientRequest& request);

    Remote& remote_;
    RunOutput& output_;
    Milestones milestones_;
    std::string last_id_;
    bool connected_ = false;
};

}  // namespace hearth::cli
