#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/interpreters/DriverChannel.h"
#include "pool/agent/program/interpreters/Warming.h"
#include "pool/agent/program/process/Scratch.h"
#include "pool/agent/program/process/Spawn.h"

namespace hearth::agent {

/// An interpreter that was forked in advance and waits for work. Its Mark is always the limit.
struct Parked {
    pid_t pid = -1;  ///< unknown until it is forked; its channel and pipes exist before
    gid_t label = 0;
    Spawned pipes;  ///< its pid is not filled in
    std::unique_ptr<DriverChannel> channel;
    std::unique_ptr<Scratch> scratch;  ///< prepared for its code; null if it is not ready yet
    bool ready = false;
    /// True if it can take work. Its own message may come before the zygote's, which has the pid.
    bool waits() const noexcept { return ready && pid > 0; }
};

/// One language's zygote: its process, and the children it keeps parked. The tenant shares its
/// user, so it may be killed, stopped or starved at any time: it is started again a few times, and
/// the caller runs cold if there is no child. On the loop's thread.
class Zygote final : public Warming, private DriverListener {
public:
    /// How many children wait after one has been used; and for a while after none was left.
    static constexpr std::size_t kParked = 2;
    static constexpr std::size_t kParkedInBursts = 4;

    /// The interface to its owner.
    struct Owner {
        std::function<gid_t()> label;
        /// A child that was taken before its fork has been forked.
        std::function<void(gid_t label, pid_t)> forked;
        /// A child that was taken has ended; `status` as of wait().
        std::function<void(pid_t, int, const rusage&)> dead;
        /// No process of the zygote is left that could report the end of its children.
        std::function<void()> gone;
        /// A fact that a waiting prewarm asks about may have changed.
        std::function<void()> changed;
    };

    /// `file` is the name of a program's file in this language.
    Zygote(EventLoop& loop, const Settings& settings, Owner owner, std::vector<std::string> argv,
           std::vector<std::string> env, std::string file);
    Zygote(const Zygote&) = delete;
    Zygote& operator=(const Zygote&) = delete;
    ~Zygote();

    /// Modules to import, in force from the next start on.
    void setImports(std::vector<std::string> imports) { imports_ = std::move(imports); }
    bool imports() const noexcept { return !imports_.empty(); }
    void start() override;
    /// Returns a ready child, or null; another is forked later, when the answer has gone out.
    std::unique_ptr<Parked> take();
    /// Returns a child that will be ready in a moment and can be sent its work: it is being forked,
    /// or requested by this call. Null if none can be expected soon.
    std::unique_ptr<Parked> takeComing();
    /// A run has ended and been answered: forks may follow now.
    void refillSoon(std::int64_t now_ns);
    const std::vector<std::string>& environment() const noexcept { return env_; }

    bool hasReady() const noexcept override;
    bool hopeless() const noexcept override { return failures_ > kMaxFailures; }
    const std::string& complaints() const noexcept override { return complaints_; }

    /// Kills it and every parked child, also stopped ones that would not react in another way.
    void killAll();

    /// The agent has reaped a process: true if it was this one.
    bool reaped(pid_t pid, std::int64_t now_ns);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

private:
    using Queue = std::deque<std::unique_ptr<Parked>>;
    static constexpr int kMaxFailures = 5;

    void driverSaid(DriverChannel& channel, std::string_view kind,
                    std::string_view payload) override;
    void driverClosed(DriverChannel& channel) override;
    void child(std::string_view payload);
    std::unique_ptr<Parked> take(const Queue::iterator& found);
    void dead(std::string_view payload);
    void childSaid(DriverChannel& channel, std::string_view kind);
    bool fork(std::int64_t now_ns);
    /// Clears the time limit for answers if no answer is awaited.
    void settle();
    /// Ends the process and plans the next start.
    void end(std::int64_t now_ns);
    void remove(const DriverChannel& channel);
    void bury(std::unique_ptr<DriverChannel>& channel);

    EventLoop& loop_;
    const Settings& settings_;
    const Owner owner_;
    const std::vector<std::string> argv_;
    const std::vector<std::string> env_;
    const std::string file_;
    std::vector<std::string> imports_;
    std::string complaints_;
    pid_t pid_ = -1;
    Spawned process_;  ///< its pipes, kept open: the children's replace them
    std::unique_ptr<DriverChannel> channel_;
    Queue parked_;               ///< oldest first; those without a pid are not forked yet
    std::deque<gid_t> asked_;    ///< labels of the unanswered forks, oldest first
    std::int64_t asked_ns_ = 0;  ///< when the oldest was requested, or the last answered
    std::int64_t short_ns_ = 0;  ///< when there last were too few
    bool ready_ = false;
    int failures_ = 0;
    std::int64_t late_at_ns_ = 0;    ///< an answer is overdue; 0 while none is awaited
    std::int64_t refill_at_ns_ = 0;  ///< 0 while there is nothing to do
    std::int64_t start_at_ns_ = 0;   ///< 0 while it runs or is not wanted
};

}  // namespace hearth::agent
