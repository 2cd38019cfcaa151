#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/agent/transport/AgentLink.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// How often to look at a sandbox that a runtime has only accepted, even without news.
inline constexpr auto kLookAgain = std::chrono::seconds(2);

/// One sandbox as a runtime finds it, also after a restart of the server.
struct SandboxInfo {
    SandboxId id;
    bool alive = false;     ///< its first process (the agent) runs, or will: it is being started
    bool listening = true;  ///< its agent can be connected to
    bool out_of_memory = false;  ///< it has ended because the kernel ended all of it for memory
    std::string trouble = {};    ///< what keeps it from listening, for an operator; often empty
    bool claimed = false;        ///< noteClaim() was called for it, perhaps by another server
    std::string unfit = {};      ///< why nobody new should get it, in words; empty: no reason
    bool frozen = false;         ///< freeze() stopped it, perhaps in an earlier life of the server
    std::map<std::string, std::string> labels;
    std::int64_t created_unix_ms = 0;
};

/// How a sandbox that is not alive, or that there is none of, has ended, in words.
inline const char* wordsOfEnd(const std::optional<SandboxInfo>& info) {
    return info && info->out_of_memory ? "its container ran out of memory"
                                       : "its container has ended";
}

/// A sandbox's current usage. A runtime reads it on the host, where tenant code cannot lie.
struct SandboxUsage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t processes = 0;
    std::uint64_t oom_kills = 0;
};

/// Makes and ends sandboxes, and finds them again. Knows nothing of pools, tenants or HTTP.
/// Thread-safe: calls for different sandboxes may run at once, each blocks until done. Failures:
/// Error for what a client may see (DiskFull, Unsupported), std::system_error and
/// std::runtime_error for the rest.
class SandboxRuntime {
public:
    virtual ~SandboxRuntime() = default;

    /// How far a sandbox is when create() returns.
    enum class Started {
        Listening,  ///< its agent can be connected to
        Accepted,   ///< it will be: find() tells when, and news() that it is time to look
    };
    /// Whether a cluster chooses each sandbox's machine and devices: GPUs are asked for there, and
    /// specs may name a runtime class.
    virtual bool inCluster() const { return false; }
    /// The claim of the volume that the servers of a cluster share, which no sandbox may mount as
    /// a volume of its own; empty: there is none.
    virtual std::string ownClaim() const { return {}; }
    /// Why sandboxes can neither be made nor ended at the moment; empty: nothing is known against
    /// it. Cheap.
    virtual std::string trouble() const { return {}; }
    /// Starts a sandbox. Where that takes long the runtime only accepts it, so that no thread of
    /// the caller waits. On failure nothing of it is left.
    virtual Started create(const SandboxId& id, const SandboxSpec& spec) = 0;
    /// Ends the sandbox and removes everything of it; knows nothing but the id and may be repeated.
    virtual void destroy(const SandboxId& id) = 0;
    /// Everything of this instance that exists, whole or in pieces.
    virtual std::vector<SandboxInfo> list() = 0;
    /// One of list(), cheaper; nullopt if it is not there.
    virtual std::optional<SandboxInfo> find(const SandboxId& id) {
        for (SandboxInfo& info : list()) {
            if (info.id == id) return std::move(info);
        }
        return std::nullopt;
    }
    /// Sets the listener for changes of sandboxes (it listens now, it has ended). Set once, before
    /// the first create(); called from threads of the runtime, perhaps too often, and up to the
    /// runtime's end. Only a runtime with remote sandboxes needs it: on this machine the end of a
    /// sandbox ends its agent's connection.
    virtual void onNews(const std::function<void(const SandboxId&)>& /*news*/) {}
    /// Makes connections to the sandbox's agent, whoever carries them (a Unix socket, TCP); the
    /// runtime vouches for the peer. Each throws if it is not there. The runtime outlives it.
    virtual agent::AgentDialer dialer(const SandboxId& id) {
        return [this, id] { return connect(id); };
    }
    /// One of them, where it is a socket of this machine; else Error(Unsupported).
    virtual Fd connect(const SandboxId& id) {
        throw Error(ErrorCode::Unsupported, "the agent of " + id + " is not on this machine");
    }
    /// nullopt if it is gone, or if the runtime cannot look into its machine (inCluster): then its
    /// agent tells.
    virtual std::optional<SandboxUsage> usage(const SandboxId& id) = 0;
    /// Sets whether the sandbox gets the processor before the others of its machine. An unclaimed
    /// one sleeps until a claim wakes it, and must not wait behind busy ones then; a claimed one
    /// must not keep the privilege. Cheap. False if nothing changed; a runtime without priorities,
    /// or without this sandbox, does nothing.
    virtual bool goFirst(const SandboxId& id, bool first) {
        static_cast<void>(id), static_cast<void>(first);
        return true;
    }
    /// Notes with the sandbox that it was claimed, for servers that do not have this one's claim
    /// marks. Called once after each claim, and again if it throws.
    virtual void noteClaim(const SandboxId& id) { static_cast<void>(id); }
    /// Whether freeze() can work on this machine.
    virtual bool freezes() { return false; }
    /// Stops every process of the sandbox, which keeps its memory; false if that did not succeed in
    /// time: then they run. Blocks for milliseconds, and for seconds where a runtime is slow.
    virtual bool freeze(const SandboxId& id) {
        static_cast<void>(id);
        return false;
    }
    /// Lets them go on; a sandbox that is not frozen, or has gone, is fine. False if it cannot be
    /// done. Cheap, so that it may be called before the first question to any sandbox.
    virtual bool thaw(const SandboxId& id) {
        static_cast<void>(id);
        return true;
    }
    /// Lowers a sandbox's cpu, memory and processes to `limits`; the kernel enforces them before
    /// this returns, and its disk stays as it is. Nothing is ever raised: passing higher limits is
    /// a bug of the caller. Returns a value if the sandbox uses more already: it must then serve
    /// nobody, for some of the limits may be set. Error(NotFound) if it is gone.
    virtual std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) = 0;
    /// Removes every kernel object of this instance that belongs neither to one of `keep` nor to a
    /// sandbox made since this runtime began. Whatever can go does; tells what resists, which
    /// list() shows too. Waits only briefly for one of them, and may be repeated.
    virtual std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) = 0;
};

}  // namespace hearth::pool
