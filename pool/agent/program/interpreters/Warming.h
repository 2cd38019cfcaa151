#pragma once

#include <string>

namespace hearth::agent {

/// Processes that `prewarm` starts in advance and waits for. On the loop's thread.
class Warming {
public:
    /// Starts it, if it is not running and has not failed too often.
    virtual void start() = 0;
    /// Something of it waits for work.
    virtual bool hasReady() const noexcept = 0;
    /// It will not come up any more.
    virtual bool hopeless() const noexcept = 0;
    /// What failed; empty for nothing.
    virtual const std::string& complaints() const noexcept = 0;

protected:
    ~Warming() = default;
};

}  // namespace hearth::agent
