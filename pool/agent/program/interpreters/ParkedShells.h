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

/// The script of a parked shell, from the agent's side: once handed over it can be taken back,
/// whole or not at all, as long as the shell has not read its end. Nothing of a command runs before
/// that.
class HandedScript {
public:
    HandedScript() = default;
    /// The agent's ends of the pipe: `unread` is a file description of its own that never blocks.
    HandedScript(Fd write_end, Fd unread)
        : write_end_(std::move(write_end)), unread_(std::move(unread)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(unread_); }
    /// Sends more while the shell waits. False if the pipe does not take all of it.
    bool send(std::string_view text);
    /// Sends the rest; nothing runs without the last byte. False if the pipe does not take all of
    /// it: then the shell can run none of it.
    bool finish(std::string_view text);
    /// True if some of it lay unread: it is removed now, and the command will not run.
    bool takeBack();
    void drop() { unread_.reset(); }

private:
    Fd write_end_;
    Fd unread_;
};

/// A shell that waits for its script. Its Mark is that of the settings, as for spawned processes.
struct ParkedShell {
    pid_t pid = -1;
    gid_t label = 0;
    Spawned pipes;  ///< its pid is not filled in
    HandedScript script;
    std::vector<std::string> env;  ///< the variables left of its start environment
};

/// Keeps shells that were started in advance, once `prewarm` has asked for them. Their commands
/// share their user and may kill or stop them: a dead shell is replaced a little later, and a shell
/// that does not start its command loses it to a new one. On the loop's thread.
class ParkedShells final : public Warming {
public:
    /// The name by which `prewarm` asks for them.
    static constexpr std::string_view kLanguage = "sh";
    /// How many wait; and how many for a while after none was left.
    static constexpr std::size_t kParked = 2;
    static constexpr std::size_t kParkedInBursts = 4;

    struct Owner {
        std::function<gid_t()> label;
        /// Called when a fact that a waiting prewarm asks about may have changed.
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

    /// Returns a parked shell and the `script` that makes it run `command` as one started with
    /// `env`; null if there is none or it cannot do that. The caller owns its process from here on;
    /// another is started when an answer has gone out.
    std::unique_ptr<ParkedShell> take(const std::vector<std::string>& env, std::string_view command,
                                      std::string& script);
    /// A run has ended and been answered: other shells may be started now.
    void answered();

    void killAll();
    /// The agent has reaped a process: true if it was a parked shell.
    bool reaped(pid_t pid);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

private:
    class Waiting;

    bool park();
    /// The environment of a shell that starts now, except ENV.
    std::vector<std::string> startEnv() const;
    /// Ends the shells that were parked before the bind, because they lack its variables.
    void retireStale();
    /// Handles a shell's message: that it is ready, that the proof went well, or anything wrong.
    void spoke(Waiting& waiting);
    /// Makes the first of all run the proof and end: other versions of a known shell may differ.
    bool startProof(Waiting& waiting);
    void remove(Waiting& waiting);
    /// Kills a shell that never was ready.
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
    bool proven_ = false;            ///< one has run the proof correctly
    bool served_ = false;            ///< one has been ready
    int failures_ = 0;               ///< shells that never got ready, since the last that did
    std::int64_t short_ns_ = 0;      ///< when there last were too few
    std::int64_t refill_at_ns_ = 0;  ///< 0 while there is nothing to do
};

}  // namespace hearth::agent
