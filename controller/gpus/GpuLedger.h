#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/Gpus.h"
#include "controller/gpus/GpuRecords.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "controller/spec/GpuSpec.h"
#include "controller/store/History.h"
#include "pool/gpu/GpuHost.h"
#include "pool/runtime/SandboxRuntime.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// The label of a sandbox with its devices: a lost data file loses no lease.
inline constexpr const char* kGpusLabel = "gpus";
std::string gpusLabel(const std::vector<std::string>& uuids);
std::vector<std::string> gpusOf(const std::map<std::string, std::string>& labels);

/// The party that gives out devices: this server for its machine, or a cluster for its nodes.
enum class GpuPlacement : std::uint8_t { Machine, Cluster };

/// Knows which sandbox has which GPU. No device is ever in two exclusive leases, even over kill -9:
/// a lease is on disk before its sandbox is made, and outlives the sandbox until the device is
/// scrubbed. A device is clean only if the disk says so, for this server's last start: a device in
/// an unknown state is scrubbed first. In a cluster there are no leases: a sandbox requests
/// resources, and its node's device plugin gives it devices. Thread-safe.
class GpuLedger {
public:
    GpuLedger(pool::GpuHost& host, WorkQueue& work, const History& history,
              GpuPlacement placement = GpuPlacement::Machine);

    struct Taken {
        std::vector<std::string> uuids;  ///< in a cluster: the resource, once for each device
        std::string lack;                ///< why there are none, in words
    };
    /// Leases devices to a sandbox that is about to be made: all that it needs, or
    /// none. `kept`: the number of fitting devices left to others.
    Taken take(const pool::SandboxId& sandbox, const std::string& pool, const GpuSpec& spec,
               std::size_t kept = 0);
    /// Keeps `until_clean` until the sandbox's devices are scrubbed after it, cannot be used any
    /// more, or serve others, too. It is destroyed at once if the sandbox has no lease.
    void keep(const pool::SandboxId& sandbox, const std::shared_ptr<void>& until_clean);
    /// Writes the sandbox's leases to disk. Call before it is made; throws if the disk refuses.
    void store(const pool::SandboxId& sandbox);
    /// Drops the leases of a sandbox that is certainly gone, or was never made: its devices are
    /// scrubbed if they could have been used.
    void drop(const pool::SandboxId& sandbox);
    /// Work of kind Gpu: scrubs the device if no sandbox holds it. May take minutes.
    ReconcileResult scrub(const std::string& uuid);
    /// Looks at the machine: new devices, faults, devices that are gone. The first look takes what
    /// it finds as known. True if anything changed for pools.
    bool look();
    /// Call once, before anything is leased: keeps the leases of existing sandboxes, by the disk or
    /// their labels, and drops the others. Labels then match the disk.
    void recover(std::vector<pool::SandboxInfo>& sandboxes);

    /// Lets a condemned device be scrubbed again. False if it is not condemned.
    bool retry(const std::string& uuid);

    /// The number of devices that fit the pool and are being scrubbed.
    std::size_t coming(const GpuSpec& spec) const;
    /// The number of devices that fit, held or not; for Shared, the sandboxes that they can serve.
    std::size_t fitting(const GpuSpec& spec) const;
    /// Like fitting(), without devices of claimed sandboxes and devices that cannot be used now.
    std::size_t attainable(const GpuSpec& spec, const std::set<pool::SandboxId>& claimed) const;
    /// True if a device fits both.
    bool overlap(const GpuSpec& one, const GpuSpec& other) const;
    /// True if the sandbox has a device that fits.
    bool fits(const pool::SandboxId& sandbox, const GpuSpec& spec) const;
    /// Sandboxes whose leases are on disk, with their devices.
    std::map<pool::SandboxId, std::vector<std::string>> leases() const;
    /// The sandboxes that have a device with a fault, or a missing one.
    std::set<pool::SandboxId> onFaulty() const;
    /// Sorted by uuid; holders without workspaces.
    std::vector<GpuView> devices() const;
    /// See refusalOf().
    std::optional<FieldError> refusal(const GpuSpec& spec) const;
    /// True if there are devices, or leases to look after.
    bool any() const;

private:
    struct Lease {
        std::string pool;
        bool shared = false;  ///< its pool shares its devices
        bool stored = false;
        std::shared_ptr<void> until_clean = {};  ///< keep()
    };
    struct Device {
        pool::GpuDevice seen;
        bool present = false;
        bool clean = false;
        bool scrubbing = false;
        std::string condemned;
        std::shared_ptr<void> until_clean;  ///< of the last exclusive lease
        std::map<pool::SandboxId, Lease> leases;
    };
    static GpuState stateOf(const Device& device);
    /// True if the device could be given to one more sandbox now.
    static bool takes(const Device& device, const GpuSpec& spec);
    /// True if a device of the same silicon has a lease: its instance, its GPU, or an instance that
    /// is gone from the driver's list but not from its sandbox.
    bool heldThroughAnother(const Device& device) const HEARTH_REQUIRES(mutex_);
    void load();
    void want(const std::string& uuid);
    /// Handles a device that is gone: unclean if it comes back. Forgotten if no sandbox has it.
    void loseSight(const std::string& uuid);
    void publish() const HEARTH_REQUIRES(mutex_);
    void condemn(const std::string& uuid, const std::string& why);

    pool::GpuHost& host_;
    WorkQueue& work_;
    const History history_;
    const GpuPlacement placement_;
    GpuRecords records_;
    mutable Mutex mutex_;
    bool looked_ HEARTH_GUARDED_BY(mutex_) = false;
    std::map<std::string, Device> devices_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
