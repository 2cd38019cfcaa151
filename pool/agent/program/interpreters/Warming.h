#pragma once

#include <string>

namespace hearth::agent {

/// Processes that `prewarm` starts in advance and waits for. On the loop's thread.
class Warming {
public:
    /// Starts the process, if it is not running and has not failed too often.
    virtual void start() = 0;
    /// True if a started process waits for work.
    virtual bool hasReady() const noexcept = 0;
    /// True if it will never be ready.
    virtual bool hopeless() const noexcept = 0;
    /// The text of the failure; empty for none.
    virtual const std::string& complaints() const noexcept = 0;

protected:
    ~Warming() = default;
};

}  // namespace hearth::agent
