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
#include "base/host/FileTable.h"
#include "pool/agent/transport/AgentLink.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// How often to check a sandbox that a runtime has only accepted, even without news.
inline constexpr auto kLookAgain = std::chrono::seconds(2);

/// One sandbox as a runtime finds it, possibly after a restart of the server.
struct SandboxInfo {
    SandboxId id;
    bool alive = false;     ///< its first process (the agent) runs, or will: it is being started
    bool listening = true;  ///< its agent accepts connections
    bool out_of_memory = false;  ///< it has ended because the kernel ended all of it for memory
    std::string trouble = {};    ///< why it does not listen, for an operator; often empty
    bool claimed = false;        ///< noteClaim() was called for it, perhaps by another server
    std::string unfit = {};      ///< the reason why no new client should get it; empty: none
    bool frozen = false;         ///< stopped by freeze(), perhaps before a restart of the server
    std::map<std::string, std::string> labels;
    std::int64_t created_unix_ms = 0;
};

/// Describes the end of a sandbox that is not alive, or no longer exists.
inline const char* wordsOfEnd(const std::optional<SandboxInfo>& info) {
    return info && info->out_of_memory ? "its container ran out of memory"
                                       : "its container has ended";
}

/// A sandbox's current usage. A runtime reads it on the host, where tenant code cannot falsify it.
struct SandboxUsage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t processes = 0;
    std::uint64_t oom_kills = 0;
};

/// Makes and ends sandboxes, and finds them again. Knows nothing of pools, tenants or HTTP.
/// Thread-safe: calls for different sandboxes may run at once; each blocks until done. Failures:
/// Error for those that a client may see (DiskFull, Unsupported), std::system_error and
/// std::runtime_error for the rest.
class SandboxRuntime {
public:
    virtual ~SandboxRuntime() = default;

    /// The state of a sandbox when create() returns.
    enum class Started {
        Listening,  ///< its agent accepts connections
        Accepted,   ///< it will listen later: news() says when to check with find()
    };
    /// True if a cluster chooses each sandbox's machine and devices: GPUs are requested there, and
    /// specs may name a runtime class.
    virtual bool inCluster() const { return false; }
    /// The claim of the volume that the servers of a cluster share, which no sandbox may mount as a
    /// volume of its own; empty: none.
    virtual std::string ownClaim() const { return {}; }
    /// The reason why sandboxes can neither be made nor ended at present; empty: none is known.
    /// Cheap.
    virtual std::string trouble() const { return {}; }
    /// Starts a sandbox. If that takes long the runtime only accepts it, so no thread of the caller
    /// waits. After a failure nothing of it remains.
    virtual Started create(const SandboxId& id, const SandboxSpec& spec) = 0;
    /// Ends the sandbox and removes all parts of it. Needs only the id and may be repeated.
    virtual void destroy(const SandboxId& id) = 0;
    /// Returns all sandboxes of this instance that exist, complete or in parts.
    virtual std::vector<SandboxInfo> list() = 0;
    /// Returns one of list(), cheaper; nullopt if it does not exist.
    virtual std::optional<SandboxInfo> find(const SandboxId& id) {
        for (SandboxInfo& info : list()) {
            if (info.id == id) return std::move(info);
        }
        return std::nullopt;
    }
    /// Sets the listener for changes of sandboxes (it listens now, it has ended). Set once, before
    /// the first create(). Called from threads of the runtime, perhaps too often, until the
    /// runtime's end. Only a runtime with remote sandboxes needs it: on this machine the end of a
    /// sandbox ends its agent's connection.
    virtual void onNews(const std::function<void(const SandboxId&)>& /*news*/) {}
    /// Returns a function that connects to the sandbox's agent (by a Unix socket, TCP) and vouches
    /// for the peer; it throws if the agent is missing. The runtime outlives it.
    virtual agent::AgentDialer dialer(const SandboxId& id) {
        return [this, id] { return connect(id); };
    }
    /// Makes one such connection if it is a socket of this machine; else Error(Unsupported).
    virtual Fd connect(const SandboxId& id) {
        throw Error(ErrorCode::Unsupported, "the agent of " + id + " is not on this machine");
    }
    /// Returns nullopt if it is gone, or if the runtime cannot see its machine (inCluster): then
    /// its agent reports the usage.
    virtual std::optional<SandboxUsage> usage(const SandboxId& id) = 0;
    /// Sets whether the sandbox gets the processor before others on its machine. An unclaimed one
    /// sleeps until a claim wakes it, and must not wait for busy ones then; a claimed one must lose
    /// the privilege. Cheap. False if nothing changed; without priorities, or for an unknown
    /// sandbox, this does nothing.
    virtual bool goFirst(const SandboxId& id, bool first) {
        static_cast<void>(id), static_cast<void>(first);
        return true;
    }
    /// Returns the most memory that the sandbox has held since the last call, by the kernel's own
    /// count; nullopt if it cannot tell. For one caller: each call begins a new count.
    virtual std::optional<std::uint64_t> takeMemoryPeak(const SandboxId& id) {
        static_cast<void>(id);
        return std::nullopt;
    }
    /// Returns how full the machine's table of open files is; nullopt if openFiles() cannot count.
    /// Cheap.
    virtual std::optional<FileTable> fileTable() { return std::nullopt; }
    /// Counts the open files of each sandbox, at a cost that grows with them.
    virtual std::map<SandboxId, std::uint64_t> openFiles() { return {}; }
    /// Marks the sandbox as claimed, for servers that lack this one's claim marks. Called once
    /// after each claim, and again if it throws.
    virtual void noteClaim(const SandboxId& id) { static_cast<void>(id); }
    /// True if freeze() can work on this machine.
    virtual bool freezes() { return false; }
    /// Stops every process of the sandbox, which keeps its memory. False if that did not succeed in
    /// time: the processes then run. Blocks for milliseconds, or seconds in a slow runtime.
    virtual bool freeze(const SandboxId& id) {
        static_cast<void>(id);
        return false;
    }
    /// Lets the processes continue. A sandbox that is not frozen, or has gone, is no error. False
    /// on failure. Cheap, so it may be called before the first request to any sandbox.
    virtual bool thaw(const SandboxId& id) {
        static_cast<void>(id);
        return true;
    }
    /// Lowers a sandbox's cpu, memory and processes to `limits`; the kernel enforces them before
    /// this returns, and its disk limit stays. Nothing is ever raised: passing higher limits is a
    /// bug of the caller. Returns a value if the sandbox already uses more: it must then serve no
    /// client, because some of the limits may be set. Error(NotFound) if it is gone.
    virtual std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) = 0;
    /// Removes every kernel object of this instance that belongs neither to one of `keep` nor to a
    /// sandbox made since this runtime began. Removes all it can and returns the rest, which list()
    /// also shows. Waits only briefly for each object, and may be repeated.
    virtual std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) = 0;
};

}  // namespace hearth::pool
