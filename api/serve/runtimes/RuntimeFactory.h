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

/// What a runtime reports to while it serves. It outlives the runtime.
struct RuntimeParts {
    const Clock& clock;
    metrics::Log& log;
    metrics::Metrics& metrics;
    /// A part that the runtime cannot do without has died. Any thread; once.
    std::function<void()> died;
};

/// One of several replicas leads and serves; the others stand by. Thread-safe.
class Leadership {
public:
    virtual ~Leadership() = default;

    /// Blocks until this replica leads: true; or until the stop. `led` is called meanwhile, by this
    /// thread, with HOST:PORT of each new replica that leads; empty: none does.
    virtual bool awaitTurn(const std::stop_token& stop,
                           const std::function<void(const std::string& address)>& led) = 0;
    /// The number of this replica's term; see controller::Epoch.
    virtual std::uint64_t term() const = 0;
    /// Stays the leader from now on. `deposed` is called once, by another thread, if another
    /// replica leads: this one must end at once.
    virtual void keep(std::function<void(const std::string& why)> deposed) = 0;
    /// True while no other replica can lead. Any thread.
    virtual bool sure() const = 0;
    /// `changed` is called by another thread, which it must not hold up, each time sure() has
    /// become another. Ends with the returned object.
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
    /// Lets another replica lead at once. Nothing may be made or destroyed after this.
    virtual void release() = 0;
};

/// A runtime that was prepared as root and is not made yet. It outlives what it makes.
class PreparedRuntime {
public:
    PreparedRuntime() = default;
    virtual ~PreparedRuntime() = default;
    PreparedRuntime(const PreparedRuntime&) = delete;
    PreparedRuntime& operator=(const PreparedRuntime&) = delete;

    /// How replicas agree on a leader; null where there is only this one. Call once, before make();
    /// the arguments outlive the result, and the result outlives what make() makes.
    virtual std::unique_ptr<Leadership> leadership(const Clock&, metrics::Log&) { return nullptr; }
    /// The group that the server keeps when it gives up root.
    virtual std::optional<gid_t> group() const { return std::nullopt; }
    /// Once, when the server may have threads. The parts outlive this object.
    virtual std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) = 0;
    /// Whether workspaces lie on a disk of ours, and so share a budget.
    virtual bool usesOurDisk() const { return false; }
    /// Updates the gauges of its own parts.
    virtual void measure(metrics::Metrics&) const {}
};

/// Whether a runtime can be driven here, and why (not), in words.
struct RuntimeFit {
    bool fits = false;
    std::string why;
};

/// Knows how to set up one runtime. Without state.
class RuntimeFactory {
public:
    RuntimeFactory() = default;
    virtual ~RuntimeFactory() = default;
    RuntimeFactory(const RuntimeFactory&) = delete;
    RuntimeFactory& operator=(const RuntimeFactory&) = delete;

    /// For --runtime auto, which takes the first one that fits.
    virtual RuntimeFit fit(const cli::ServeConfig& config) const = 0;
    /// Whether the server must be started as root for it.
    virtual bool needsRoot() const { return true; }
    /// Throws an Error that says what is missing, before anything is made.
    virtual void require(const cli::ServeConfig&) const {}
    /// The part of the set-up that needs root, if we have it; with one thread, while we hold the
    /// instance. Makes the server's directories; the account is to own them.
    virtual std::unique_ptr<PreparedRuntime> prepare(const cli::ServeConfig& config,
                                                     const Instance& instance,
                                                     const controller::Account& account) const = 0;
};

/// Makes the directories of the server's state, and these, for the account.
void makeServerDirectories(const Instance& instance, const controller::Account& account,
                           const std::vector<std::string>& further = {});

}  // namespace hearth::program
