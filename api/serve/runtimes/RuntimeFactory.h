#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "api/config/ServeConfig.h"
#include "api/serve/process/Privileges.h"
#include "base/host/Instance.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::program {

/// The parts that a runtime reports to while it serves. They must outlive the runtime.
struct RuntimeParts {
    const Clock& clock;
    metrics::Log& log;
    metrics::Metrics& metrics;
    /// Called when a part that the runtime needs has died. Any thread; at most once.
    std::function<void()> died;
};

/// The leadership among several replicas: one leads and serves, the others stand by. Thread-safe.
class Leadership {
public:
    virtual ~Leadership() = default;

    /// Blocks until this replica leads (returns true) or until the stop. Meanwhile `led` is called,
    /// in this thread, with HOST:PORT of each new leading replica; empty: none leads.
    virtual bool awaitTurn(const std::stop_token& stop,
                           const std::function<void(const std::string& address)>& led) = 0;
    /// Returns the number of this replica's term; see controller::Epoch.
    virtual std::uint64_t term() const = 0;
    /// Stays the leader from now on. `deposed` is called once, in another thread, if another
    /// replica leads: this replica must then end at once.
    virtual void keep(std::function<void(const std::string& why)> deposed) = 0;
    /// True while no other replica can lead. Any thread.
    virtual bool sure() const = 0;
    /// Calls `changed`, which must not block, in another thread each time sure() has changed. Ends
    /// with the returned object.
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
    /// Lets another replica lead at once. Nothing may be made or destroyed after this.
    virtual void release() = 0;
};

/// A runtime that was prepared as root and is not made yet. It must outlive the runtime it makes.
class PreparedRuntime {
public:
    PreparedRuntime() = default;
    virtual ~PreparedRuntime() = default;
    PreparedRuntime(const PreparedRuntime&) = delete;
    PreparedRuntime& operator=(const PreparedRuntime&) = delete;

    /// Returns how replicas agree on a leader; null if there is only one. Call once, before make();
    /// the arguments must outlive the result, and the result the runtime that make() returns.
    virtual std::unique_ptr<Leadership> leadership(const Clock&, metrics::Log&) { return nullptr; }
    /// Returns the group that the server keeps when it gives up root.
    virtual std::optional<gid_t> group() const { return std::nullopt; }
    /// Makes the runtime. Call once, when threads are allowed. The parts outlive this object.
    virtual std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) = 0;
    /// True if workspaces are on the server's own disk and so share a budget.
    virtual bool usesOurDisk() const { return false; }
    /// Updates the gauges of its own parts.
    virtual void measure(metrics::Metrics&) const {}
};

/// The fitness of a runtime for this machine, and the reason in words.
struct RuntimeFit {
    bool fits = false;
    std::string why;
};

/// Sets up one runtime. Has no state.
class RuntimeFactory {
public:
    RuntimeFactory() = default;
    virtual ~RuntimeFactory() = default;
    RuntimeFactory(const RuntimeFactory&) = delete;
    RuntimeFactory& operator=(const RuntimeFactory&) = delete;

    /// Checks the runtime for --runtime auto, which takes the first one that fits.
    virtual RuntimeFit fit(const cli::ServeConfig& config) const = 0;
    /// True if the server must be started as root for this runtime.
    virtual bool needsRoot() const { return true; }
    /// Throws an Error that says what is missing, before anything is made.
    virtual void require(const cli::ServeConfig&) const {}
    /// Does the part of the set-up that needs root, if the process has it. Call with one thread,
    /// while the instance is held. Makes the server's directories, owned by the account.
    virtual std::unique_ptr<PreparedRuntime> prepare(const cli::ServeConfig& config,
                                                     const Instance& instance,
                                                     const controller::Account& account) const = 0;
};

/// Makes the directories of the server's state, and the `further` ones, for the account.
void makeServerDirectories(const Instance& instance, const controller::Account& account,
                           const std::vector<std::string>& further = {});

}  // namespace hearth::program
