#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/journal/Journal.h"
#include "metrics/Log.h"
#include "pool/gpu/GpuHost.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// The state of GPUs and their leases on disk, in the journal's tables `gpus` and `gpu_leases`.
/// Knows no rules: GpuLedger decides what is written, and when. Each write is a transaction on the
/// caller's thread and committed at the return. Thread-safe; holds no lock of its own meanwhile.
class GpuRecords {
public:
    /// `tenure` says which records of clean devices still count.
    GpuRecords(Journal& journal, metrics::Log& log, pool::GpuTenure tenure);

    struct Device {
        std::string uuid;
        bool clean = false;     ///< it was so at the end of this server's last start
        std::string condemned;  ///< why it is not given out any more; empty: it is not condemned
    };
    struct Lease {
        std::string uuid;
        pool::SandboxId sandbox;
        std::string pool;
        bool shared = false;
        std::string parent;  ///< for a MIG instance the uuid of its GPU; else empty
    };
    struct Contents {
        std::vector<Device> devices;
        std::vector<Lease> leases;
    };
    /// Reads everything, and renews records of clean devices for this start; if that is refused, it
    /// is logged. Call once, before all others. Throws the database's errors if the read fails.
    Contents load();

    /// Stores leases, all or none; their devices are unclean from now on and not condemned. Throws
    /// the database's errors.
    void store(const std::vector<Lease>& leases);
    /// Deletes the leases of a gone sandbox. A failure is logged; retryErasures() tries again.
    void erase(const pool::SandboxId& sandbox);
    /// Repeats each erase() that has failed. A failure is logged.
    void retryErasures();

    /// Stores that the device is clean, in this start, and not condemned. Throws the database's
    /// errors.
    void storeClean(const std::string& uuid);
    /// Stores that the device is condemned, and unclean. A failure is logged: the device is then
    /// scrubbed by the next start.
    void storeCondemned(const std::string& uuid, const std::string& why);
    /// Stores that the device is not condemned any more, and unclean. Throws the database's errors.
    void clearCondemned(const std::string& uuid);
    /// Deletes the record of a device that is not condemned: it is unclean. A failure is logged.
    void distrust(const std::string& uuid);

private:
    /// Moves the records of clean devices from the last start to this one.
    void renew();

    Journal& journal_;
    metrics::Log& log_;
    const pool::GpuTenure tenure_;
    Mutex mutex_;
    /// Gone sandboxes whose leases the disk still has.
    std::set<pool::SandboxId> unerased_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
