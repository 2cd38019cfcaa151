#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pool/Member.h"

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

/// What a pool has that no claim has taken yet, seen from one template.
struct WarmStock {
    std::size_t fresh = 0;            ///< made of that template: being made, warming or ready
    std::size_t fresh_ready = 0;      ///< of these, ready
    std::size_t ready = 0;            ///< of any template
    std::optional<TimePoint> oldest;  ///< when the one that is ready longest was made
};

/// The members of every pool, and the list of those that are ready, oldest first. Mechanism only:
/// no policy, no I/O under its lock. Thread-safe.
class WarmPool {
public:
    /// A member that is being created: from now on it counts, so nobody creates it twice.
    void add(Member member);
    /// Creating → Warming → Ready. False if the member has gone or moved on meanwhile.
    bool warming(const SandboxId& id);
    bool ready(const SandboxId& id, std::shared_ptr<agent::AgentClient> agent, WallTime at,
               const StartTimes& took = {});
    /// An adopted member that already serves a workspace.
    void adopt(Member member);

    /// Takes the oldest ready sandbox of the pool and makes it Claimed; nullopt if there is none.
    std::optional<Member> claim(const std::string& pool, const std::string& workspace,
                                const std::string& tenant);
    /// Claimed → Ready again, before others: of a claim that was taken back before its sandbox was
    /// marked or told anything, so that nobody can tell it from one never claimed. False if it has
    /// moved on meanwhile.
    bool giveBack(const SandboxId& id);
    /// → Draining, from any phase; true for the first caller, who sees to its end.
    bool drain(const SandboxId& id);
    /// → Failed, from any phase but Draining; true for the first caller.
    bool fail(const SandboxId& id);
    /// Forgets the member: nothing of it exists any more.
    void remove(const SandboxId& id);

    std::optional<Member> find(const SandboxId& id) const;
    std::vector<Member> members(const std::string& pool) const;
    std::vector<Member> all() const;
    PoolCounts counts(const std::string& pool) const;
    /// As counts(), at a cost that does not grow with the pool.
    WarmStock stock(const std::string& pool, const std::string& template_hash) const;
    /// The languages of the pool's image, as one of its agents told; nullopt while there is none.
    std::optional<std::vector<std::string>> languages(const std::string& pool) const;

private:
    /// One pool's part.
    struct Shelf {
        PoolCounts counts;
        std::deque<Member*> ready;               ///< oldest first
        std::map<std::string, PoolCounts> made;  ///< by template, as long as there is any of it
    };

    Member* locate(const SandboxId& id);
    void enlist(Member& member);
    void unlist(const Member& member);
    void countIn(const Member& member);
    void countOut(const Member& member);
    void move(Member& member, Phase phase);

    mutable std::mutex mutex_;
    std::map<SandboxId, std::unique_ptr<Member>> members_;  // guarded by mutex_
    std::map<std::string, Shelf> shelves_;                  // guarded by mutex_
};

}  // namespace hearth::pool
