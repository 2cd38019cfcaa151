#pragma once

#include <atomic>
#include <string>

#include "api/http/Handler.h"
#include "base/Mutex.h"

namespace hearth::program {

/// Stands before what clients ask for while the server comes up: its addresses are taken from the
/// first moment on, so that a port that another program has is known before anything is made, and
/// who asks too early is told to come back. Thread-safe.
class StartupGate final : public api::Handler {
public:
    /// `inside` must outlive it, and is asked nothing before open().
    explicit StartupGate(api::Handler& inside) : inside_(inside) {}

    /// Throws Error(Unavailable) with Retry-After until open().
    api::Response handle(api::Request& request) override;

    /// What the server is doing meanwhile, in a few words for an operator.
    void say(std::string doing);
    std::string doing() const;
    void open() { open_ = true; }
    bool isOpen() const { return open_; }

private:
    api::Handler& inside_;
    std::atomic<bool> open_{false};
    mutable Mutex mutex_;
    std::string doing_ HEARTH_GUARDED_BY(mutex_) = "starting";
};

}  // namespace hearth::program
