#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "pool/warm/Member.h"

namespace hearth::pool {

struct PoolCounts {
    std::size_t creating = 0;
    std::size_t warming = 0;
    std::size_t ready = 0;
    std::size_t claimed = 0;
    std::size_t draining = 0;
    std::size_t failed = 0;

    std::size_t total() const { return creating + warming + ready + claimed + draining + failed; }
};

/// A pool's unclaimed sandboxes, compared with one template.
struct WarmStock {
    std::size_t fresh = 0;            ///< made from that template: creating, warming or ready
    std::size_t fresh_ready = 0;      ///< the ready ones of these
    std::size_t ready = 0;            ///< from any template
    std::optional<TimePoint> oldest;  ///< when the longest-ready sandbox was made
};

/// The members of every pool, and the list of ready ones, oldest first. Mechanism only: no policy,
/// no I/O under its lock. Thread-safe.
class WarmPool {
public:
    /// Adds a member that is being created; it counts at once, so nobody creates it twice.
    void add(Member member);
    /// The same, if the disk promised to all members then is at most `most`.
    bool addWithin(Member member, std::uint64_t most);
    /// The disk promised to all members together.
    std::uint64_t promisedDisk() const;
    /// Creating → Warming → Ready. False if the member was removed or is in another phase.
    bool warming(const SandboxId& id);
    bool ready(const SandboxId& id, std::shared_ptr<agent::AgentClient> agent, WallTime at,
               const StartTimes& took = {});
    /// Adds a member that already serves a workspace. Replaces an `unasked` member with its id in
    /// one step, so it is never missing. False if another is there, or its end was requested.
    bool adopt(Member member);
    /// Sets the agent of a new connection. False if the member is neither Ready nor Claimed.
    bool reconnected(const SandboxId& id, std::shared_ptr<agent::AgentClient> agent);

    /// Takes the oldest ready sandbox of the pool whose agent is connected, and makes it Claimed;
    /// nullopt if there is none.
    std::optional<Member> claim(const std::string& pool, const std::string& workspace,
                                const std::string& tenant);
    /// Claimed → Ready again, first in line: for a claim that was cancelled before its sandbox was
    /// marked or received any data, so it cannot be distinguished from one never claimed. False if
    /// it is in another phase now.
    bool giveBack(const SandboxId& id);
    /// Creating, Warming or Ready → Draining; true for the first caller, who must end it. False for
    /// a claimed sandbox: it ends with its workspace (drain), never during its claim.
    bool retire(const SandboxId& id);
    /// → Draining, from any phase; true for the first caller, who must end it. Only for the end of
    /// a workspace: other callers use retire().
    bool drain(const SandboxId& id);
    /// → Failed, from any phase except Draining; true for the first caller.
    bool fail(const SandboxId& id);
    /// Forgets the member: nothing of the sandbox exists any more.
    void remove(const SandboxId& id);
    /// Returns how many members have been removed.
    std::uint64_t removals() const;
    /// Blocks until there are more removals than `seen`, but at most for `most`.
    void awaitRemoval(std::uint64_t seen, std::chrono::milliseconds most) const;

    std::optional<Member> find(const SandboxId& id) const;
    std::vector<Member> members(const std::string& pool) const;
    std::vector<Member> all() const;
    PoolCounts counts(const std::string& pool) const;
    /// Returns how many sandboxes of the pool each of these tenants has claimed, in their order.
    /// The cost depends on the number of tenants, not on the pool's size.
    std::vector<std::size_t> claimedBy(const std::string& pool,
                                       const std::vector<std::string>& tenants) const;
    /// Compares the pool's unclaimed sandboxes with a template; the pool's size adds no cost.
    WarmStock stock(const std::string& pool, const std::string& template_hash) const;
    /// Returns the languages of the pool's image, as its newest agent reported; nullopt while there
    /// is no agent. Constant time.
    std::optional<std::vector<std::string>> languages(const std::string& pool) const;

private:
    /// The data of one pool.
    struct Shelf {
        PoolCounts counts;
        std::deque<Member*> ready;                   ///< oldest first
        std::map<std::string, PoolCounts> made;      ///< by template, while it has any members
        std::map<std::string, std::size_t> claimed;  ///< by tenant, without zeros
        std::size_t agents = 0;                      ///< members that reported their languages
        std::vector<std::string> languages;          ///< from the newest agent
    };

    Member* locate(const SandboxId& id) HEARTH_REQUIRES(mutex_);
    bool place(Member member) HEARTH_REQUIRES(mutex_);
    void enlist(Member& member) HEARTH_REQUIRES(mutex_);
    void unlist(const Member& member) HEARTH_REQUIRES(mutex_);
    void hear(const Member& member) HEARTH_REQUIRES(mutex_);
    void countIn(const Member& member) HEARTH_REQUIRES(mutex_);
    void countOut(const Member& member) HEARTH_REQUIRES(mutex_);
    void move(Member& member, Phase phase) HEARTH_REQUIRES(mutex_);

    mutable Mutex mutex_;
    std::map<SandboxId, std::unique_ptr<Member>> members_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, Shelf> shelves_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t promised_disk_ HEARTH_GUARDED_BY(mutex_) = 0;  // of all members_
    std::uint64_t removals_ HEARTH_GUARDED_BY(mutex_) = 0;
    mutable Condition removed_;
};

}  // namespace hearth::pool
