#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller/ClaimQueue.h"
#include "controller/EventLog.h"
#include "controller/ImageAllowList.h"
#include "controller/PoolReconciler.h"
#include "controller/ReconcileLoop.h"
#include "controller/SpecStore.h"
#include "metrics/Log.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::controller {

/// What the operator allows claims to do with images that have no pool.
struct OnDemandRules {
    ImageAllowList allow;              ///< empty: nothing
    std::uint32_t max_sandboxes = 20;  ///< of all such pools together
    std::chrono::seconds keep = std::chrono::hours(1);
    std::chrono::seconds max_wait = std::chrono::minutes(5);  ///< of a claim for its image
    std::vector<std::string> insecure_registries;             ///< "registry.example:5000"
};

/// Pools that nobody declared: made for claims that name an image which no declared pool has, one
/// for each image, without warm sandboxes; else they are pools like others, with the template,
/// lifecycle and limits of the default pool. One goes when it was unused for a while, and with it
/// the image if a claim had brought it. An image is fetched and made ready once however many claims
/// wait for it, by the work queue and not by a claim, so it goes on when they give up. Thread-safe.
class OnDemandPools {
public:
    OnDemandPools(OnDemandRules rules, pool::ContainerRuntime& runtime, SpecStore& specs,
                  pool::WarmPool& warm, ClaimQueue& claims, WorkQueue& work, EventLog& events,
                  metrics::Metrics& metrics, metrics::Log& log, std::string default_pool,
                  const Clock& clock);

    struct Found {
        PoolPtr pool;
        pool::ImageStages stages;  ///< zero where the image was ready
    };
    /// The pool of an image. Blocks while the image is fetched, at most the rules'
    /// max_wait, or so long as `patience` says if that is less.
    /// Errors: InvalidSpec (not allowed, unknown to its registry, refused), Unavailable (no
    /// registry answers, not ready in time, shutting down, taken back), DiskFull, Deadline;
    /// MustWait.
    Found poolFor(const std::string& image, const Patience& patience);

    /// The work on keys ("image", reference) and ("images", "all").
    ReconcileResult prepare(const std::string& image);
    ReconcileResult collect();
    /// Claims that wait are refused: the server stops.
    void stop();

private:
    /// The making ready of one image; claims that want it meanwhile share it.
    struct Job {
        bool done = false;
        std::exception_ptr failure;
        pool::ImageStages stages;
        std::string pool;
        TimePoint ended{};
    };
    using JobPtr = std::shared_ptr<Job>;

    std::optional<pool::KnownImage> allowed(const std::string& image);
    [[noreturn]] void refuse(const std::string& image) const;
    PoolPtr live(const std::string& name);
    PoolPtr ready(const std::string& image);
    Found await(const std::string& image, const Patience& patience);
    std::string make(const std::string& image, pool::ImageStages& stages);
    PoolSpec specFor(const std::string& image) const;
    void forgetOld(TimePoint now);
    std::vector<std::string> unused(TimePoint now);

    const OnDemandRules rules_;
    pool::ContainerRuntime& runtime_;
    SpecStore& specs_;
    pool::WarmPool& warm_;
    ClaimQueue& claims_;
    WorkQueue& work_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    const std::string default_pool_;
    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::map<std::string, JobPtr> jobs_;          // guarded by mutex_; by what claims call images
    std::map<std::string, std::string> pool_of_;  // guarded by mutex_; the same, made ready
    std::map<std::string, TimePoint> used_;       // guarded by mutex_; by pool
    std::size_t running_ = 0;                     // guarded by mutex_; jobs
    bool collecting_ = false;                     // guarded by mutex_; no job runs then
    bool stopped_ = false;                        // guarded by mutex_
};

}  // namespace hearth::controller
