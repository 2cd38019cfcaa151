#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/Gpus.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "controller/spec/GpuSpec.h"
#include "controller/store/History.h"
#include "pool/gpu/GpuHost.h"
#include "pool/runtime/SandboxRuntime.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// The label of a sandbox with its devices: a lost data file forgets no lease.
inline constexpr const char* kGpusLabel = "gpus";
std::string gpusLabel(const std::vector<std::string>& uuids);
std::vector<std::string> gpusOf(const std::map<std::string, std::string>& labels);

/// The giver of devices: this server for its machine, or a cluster for its nodes.
enum class GpuPlacement : std::uint8_t { Machine, Cluster };

/// Which sandbox has which GPU. No device is ever in two exclusive leases, also over kill -9: a
/// lease is on disk before its sandbox is made, and outlives the sandbox until the device is
/// scrubbed. A device is clean only where the disk says so, for this server's last start: whatever
/// is not known is scrubbed first. In a cluster there are no leases: a sandbox asks for resources,
/// and its node's device plugin gives it devices. Thread-safe.
class GpuLedger {
public:
    GpuLedger(pool::GpuHost& host, WorkQueue& work, const History& history,
              GpuPlacement placement = GpuPlacement::Machine);

    struct Taken {
        std::vector<std::string> uuids;  ///< in a cluster: the resource, once for each device
        std::string lack;                ///< why there are none, in words
    };
    /// Leases devices to a sandbox that is about to be made: all that the pool's sandboxes have, or
    /// none. `kept`: so many fitting devices are left to others.
    Taken take(const pool::SandboxId& sandbox, const std::string& pool, const GpuSpec& spec,
               std::size_t kept = 0);
    /// Puts the sandbox's leases on disk. Before the sandbox is made; throws if the disk refuses.
    void store(const pool::SandboxId& sandbox);
    /// The sandbox is gone for certain, or was never made: its devices are scrubbed if they could
    /// have been used.
    void drop(const pool::SandboxId& sandbox);
    /// Work of kind Gpu: scrubs the device if nobody holds it. May take minutes.
    ReconcileResult scrub(const std::string& uuid);
    /// Looks at the machine: new devices, faults, devices that have gone. The first look takes what
    /// it finds as known. True if there is news for pools.
    bool look();
    /// Once, before anything is leased: keeps the leases of sandboxes that exist, by the disk or by
    /// their labels, and drops the others. Labels then say what the disk does.
    void recover(std::vector<pool::SandboxInfo>& sandboxes);

    /// Makes a condemned device be scrubbed again. False: it is not condemned.
    bool retry(const std::string& uuid);

    /// Devices that fit the pool and are on their way back: being scrubbed.
    std::size_t coming(const GpuSpec& spec) const;
    /// Devices that fit, whoever has them; for Shared, the sandboxes that they are enough for.
    std::size_t fitting(const GpuSpec& spec) const;
    /// As fitting(), without the devices of claimed sandboxes and those that cannot be used now.
    std::size_t attainable(const GpuSpec& spec, const std::set<pool::SandboxId>& claimed) const;
    /// A device fits both.
    bool overlap(const GpuSpec& one, const GpuSpec& other) const;
    /// The sandbox has a device that fits.
    bool fits(const pool::SandboxId& sandbox, const GpuSpec& spec) const;
    /// Sandboxes whose leases are on disk, with their devices.
    std::map<pool::SandboxId, std::vector<std::string>> leases() const;
    /// Those of them that have a device with a fault.
    std::set<pool::SandboxId> onFaulty() const;
    /// By uuid; holders without workspaces.
    std::vector<GpuView> devices() const;
    /// See refusalOf().
    std::optional<FieldError> refusal(const GpuSpec& spec) const;
    /// There are devices, or leases to look after.
    bool any() const;

private:
    struct Lease {
        std::string pool;
        bool shared = false;  ///< of a pool that shares its devices
        bool stored = false;
    };
    struct Device {
        pool::GpuDevice seen;
        bool present = false;
        bool clean = false;
        bool scrubbing = false;
        std::string condemned;
        std::map<pool::SandboxId, Lease> leases;
    };
    static GpuState stateOf(const Device& device);
    /// The device could be given to one more sandbox now.
    static bool takes(const Device& device, const GpuSpec& spec);
    /// Another device of the same silicon has a lease: its instance, its GPU, or an instance that
    /// is gone from the driver's list but not from its sandbox.
    bool heldThroughAnother(const Device& device) const HEARTH_REQUIRES(mutex_);
    void load();
    /// Devices that were clean in the last start are clean in this one.
    void renew();
    void want(const std::string& uuid);
    /// Takes the leases of a sandbox that has gone from the disk; kept in mind where that fails.
    void erase(const pool::SandboxId& sandbox);
    /// The device is unclean from now on; on disk too.
    void distrust(const std::string& uuid);
    /// A device that has gone: it is unclean when it comes back. Forgotten where nobody holds it.
    void loseSight(const std::string& uuid);
    void publish() const HEARTH_REQUIRES(mutex_);
    void condemn(const std::string& uuid, const std::string& why);

    pool::GpuHost& host_;
    WorkQueue& work_;
    const History history_;
    const GpuPlacement placement_;
    const pool::GpuTenure tenure_;
    mutable Mutex mutex_;
    bool looked_ HEARTH_GUARDED_BY(mutex_) = false;
    std::set<pool::SandboxId> unerased_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, Device> devices_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
