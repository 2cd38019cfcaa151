#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/Error.h"
#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "base/task/Task.h"

namespace hearth::mcp::seeds {

/// One caller at a time for each key, for calls that check whether a thing exists and else make it.
/// Callers of different keys never wait for each other. Thread-safe; outlives its turns.
class NamedLocks {
public:
    /// Waits until no other turn of this key is held, at most until this time. The turn ends with
    /// the returned object. Throws Error(Unavailable) if it takes longer.
    Task<std::shared_ptr<void>> take(std::string key, TimePoint until) {
        auto free = std::make_shared<Free>(*this, key, until);
        while (true) {
            std::shared_ptr<void> turn = takeNow(key);
            if (turn) co_return turn;
            co_await free;
            if (free->ready()) continue;
            throw Error(ErrorCode::Unavailable, "another call for the same still goes on")
                .hint("try again when it has ended")
                .retryAfter(std::chrono::seconds(5));
        }
    }

private:
    class Free final : public Waitable {
    public:
        Free(NamedLocks& locks, std::string key, TimePoint until)
            : locks_(locks), key_(std::move(key)), until_(until) {}
        bool ready() const override {
            const MutexLock lock(locks_.mutex_);
            return !locks_.held_.contains(key_);
        }
        TimePoint until() const override { return until_; }
        std::shared_ptr<void> subscribe(std::function<void()> wake) override {
            return locks_.ended_.add(std::move(wake));
        }
        std::optional<Progress> progress() const override {
            return Progress{"another call for the same", 0, 0, {}};
        }

    private:
        NamedLocks& locks_;
        const std::string key_;
        const TimePoint until_;
    };

    /// Null if another one has the turn.
    std::shared_ptr<void> takeNow(const std::string& key) {
        const MutexLock lock(mutex_);
        if (!held_.insert(key).second) return nullptr;
        return {this, [this, key](void*) {
                    {
                        const MutexLock ending(mutex_);
                        held_.erase(key);
                    }
                    ended_.notify();
                }};
    }

    mutable Mutex mutex_;
    std::set<std::string> held_ HEARTH_GUARDED_BY(mutex_);
    Subscribers ended_;
};

}  // namespace hearth::mcp::seeds
