#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "controller/contract/Executions.h"

namespace hearth::mcp {

/// The work that an unanswered tool call waits for: an execution, or first a sandbox for it.
/// Thread-safe.
class PendingWork {
public:
    virtual ~PendingWork() = default;
    /// True also if its sandbox does not answer, so that its end is not known.
    virtual bool finished() const = 0;
    /// Blocks until it has finished or `timeout` has passed. Does not block while it waits for a
    /// sandbox. Throws the Error for a client if its sandbox refused to run it.
    virtual void wait(std::chrono::milliseconds timeout) = 0;
    /// As Execution::subscribe().
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
    /// As Execution::read(); nullopt while there is no execution.
    virtual std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                        std::size_t most) const = 0;
    /// The execution's id; empty while there is none.
    virtual std::string executionId() const = 0;

    struct Doing {
        std::string what;                ///< "running"
        std::optional<TimePoint> since;  ///< none: since the call began
    };
    virtual Doing doing() const = 0;
};

std::shared_ptr<PendingWork> workOf(std::shared_ptr<controller::Execution> execution);

}  // namespace hearth::mcp
