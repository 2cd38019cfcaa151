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
    /// The languages of the pool's image, as one of its agents told; nullopt while there is none.
    std::optional<std::vector<std::string>> languages(const std::string& pool) const;

private:
    Member* locate(const SandboxId& id);
    void unlist(const Member& member);

    mutable std::mutex mutex_;
    std::map<SandboxId, std::unique_ptr<Member>> members_;           // guarded by mutex_
    std::map<std::string, std::deque<Member*>, std::less<>> ready_;  // guarded by mutex_
    std::map<std::string, PoolCounts> counts_;                       // guarded by mutex_

    std::size_t& counter(const Member& member);
    void move(Member& member, Phase phase);
};

}  // namespace hearth::pool
