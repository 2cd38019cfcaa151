#pragma once

#include <atomic>
#include <string>

#include "api/http/Handler.h"
#include "base/Mutex.h"

namespace hearth::program {

/// Answers clients while the server starts. The addresses are taken first, so that a port conflict
/// is found before anything is made; early requests get an answer to retry. Thread-safe.
class StartupGate final : public api::Handler {
public:
    /// `inside` must outlive it, and gets no request before open().
    explicit StartupGate(api::Handler& inside) : inside_(inside) {}

    /// Throws Error(Unavailable) with Retry-After until open().
    api::Response handle(api::Request& request) override;

    /// Sets the present step of the start, in a few words for an operator.
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
