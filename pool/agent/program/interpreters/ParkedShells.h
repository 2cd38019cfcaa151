#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Fd.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/interpreters/Warming.h"
#include "pool/agent/program/process/Environment.h"
#include "pool/agent/program/process/Spawn.h"

namespace hearth::agent {

/// The script of a shell that was started ahead, as it is seen from here: once handed over it can
/// be taken back, whole or not at all, as long as the shell has not read its end. Nothing of a
/// command runs before that.
class HandedScript {
public:
    HandedScript() = default;
    /// Our ends of the pipe: `unread` is a file description of our own that never blocks.
    HandedScript(Fd write_end, Fd unread)
        : write_end_(std::move(write_end)), unread_(std::move(unread)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(unread_); }
    /// Sends more while the shell waits. False if the pipe does not take all of it.
    bool send(std::string_view text);
    /// Sends the rest; no part without the last byte does anything. False if the pipe does not take
    /// all of it: the shell can run none of it.
    bool finish(std::string_view text);
    /// True if some of it lay unread: it is gone now, and the command will not run.
    bool takeBack();
    void drop() { unread_.reset(); }

private:
    Fd write_end_;
    Fd unread_;
};

/// A shell that waits for its script. Its Mark is that of the settings, as of what is spawned.
struct ParkedShell {
    pid_t pid = -1;
    gid_t label = 0;
    Spawned pipes;  ///< its pid is not filled in
    HandedScript script;
    std::vector<std::string> env;  ///< what it has of the one it was started with
};

/// Keeps shells that were started in advance, once `prewarm` has asked for them. Their commands
/// share their user and may kill or stop them: a dead shell is replaced a little later, and a shell
/// that does not start its command loses it to a new one. On the loop's thread.
class ParkedShells final : public Warming {
public:
    /// The name by which `prewarm` asks for them.
    static constexpr std::string_view kLanguage = "sh";
    /// How many wait; and for a while after none was left.
    static constexpr std::size_t kParked = 2;
    static constexpr std::size_t kParkedInBursts = 4;

    struct Owner {
        std::function<gid_t()> label;
        /// Something a waiting prewarm asks about may have changed.
        std::function<void()> changed;
    };

    ParkedShells(EventLoop& loop, const Settings& settings, const Environment& environment,
                 Owner owner);
    ParkedShells(const ParkedShells&) = delete;
    ParkedShells& operator=(const ParkedShells&) = delete;
    ~ParkedShells();

    void start() override;
    bool hasReady() const noexcept override;
    bool hopeless() const noexcept override;
    const std::string& complaints() const noexcept override { return complaints_; }

    /// A shell that waits, and what makes it run `command` as one that was started with `env`; null
    /// if there is none or it would not do. The caller has its process from here on; another is
    /// started when an answer has gone out.
    std::unique_ptr<ParkedShell> take(const std::vector<std::string>& env, std::string_view command,
                                      std::string& script);
    /// A run has ended and been answered: now is the time to start others.
    void answered();

    void killAll();
    /// The agent has reaped a process: true if it was one that waited.
    bool reaped(pid_t pid);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

private:
    class Waiting;

    bool park();
    /// The environment with which one starts now, except ENV.
    std::vector<std::string> startEnv() const;
    /// Ends those that were parked before the bind, because they lack its variables.
    void retireStale();
    /// One has said something: that it is ready, that the proof went well, or what it should not.
    void spoke(Waiting& waiting);
    /// The first of all runs the proof and goes: other versions of a known shell may differ.
    bool startProof(Waiting& waiting);
    void remove(Waiting& waiting);
    /// Kills one that never was ready.
    void drop(Waiting& waiting);
    void failed(std::int64_t now_ns);
    std::size_t wanted(std::int64_t now_ns) const noexcept;

    EventLoop& loop_;
    const Settings& settings_;
    const Environment& environment_;
    const Owner owner_;
    std::deque<std::unique_ptr<Waiting>> parked_;  ///< oldest first
    std::string complaints_;
    bool asked_ = false;
    bool proven_ = false;            ///< one has run the proof as it should
    bool served_ = false;            ///< one has been ready
    int failures_ = 0;               ///< of those that never were ready, since one was
    std::int64_t short_ns_ = 0;      ///< when there were too few last
    std::int64_t refill_at_ns_ = 0;  ///< 0 while there is nothing to do
};

}  // namespace hearth::agent
