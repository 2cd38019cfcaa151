#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "base/task/Task.h"
#include "base/tenants/TenantPlaces.h"
#include "controller/claims/ImageFetcher.h"
#include "controller/claims/Supply.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkLine.h"
#include "controller/spec/ImageAllowList.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// The operator's rules for claims of images without a pool.
struct OnDemandRules {
    ImageAllowList allow;              ///< empty: no image
    std::uint32_t max_sandboxes = 20;  ///< in all such pools together
    std::chrono::seconds keep = std::chrono::hours(1);
    std::chrono::seconds max_wait = std::chrono::minutes(5);  ///< for a claim to get its image
};

/// Undeclared pools, made for claims that name an image which no declared pool has: one per image,
/// without warm sandboxes, with the template, lifecycle and limits of the default pool. An unused
/// pool is removed after a while, and so is its image if a claim had fetched it. An image is
/// fetched and unpacked once however many claims wait for it. The work queue does that, no claim,
/// so it continues when they give up. Tenants take turns, and one that asks for many images leaves
/// places for others. Thread-safe.
class OnDemandPools {
public:
    OnDemandPools(OnDemandRules rules, std::string default_pool, pool::ImageRuntime& runtime,
                  SpecStore& specs, const Supply& supply, ImageFetcher& images,
                  const History& history);

    struct Found {
        PoolPtr pool;
        pool::ImageStages stages;  ///< zero if the image was ready
    };
    /// Returns the pool for an image that a claim of the tenant names. Waits while the image is
    /// fetched, at most the rules' max_wait, or `patience` if that is less. Errors: InvalidSpec
    /// (not allowed, unknown to its registry, refused), Unavailable (no registry answers, not ready
    /// in time, shutting down), DiskFull, Deadline.
    Task<Found> poolFor(std::string tenant, std::string image, std::chrono::milliseconds patience);

    /// Does the work on the keys ("image", reference) and ("images", "all").
    ReconcileResult prepare(const std::string& image);
    ReconcileResult collect();
    /// The number of names that are remembered: of images, jobs and pools.
    std::size_t remembered();
    /// Refuses waiting claims: the server stops.
    void stop();

private:
    /// The job of making one image ready; claims that want it meanwhile share it.
    struct Job {
        std::string image;
        enum class Turn : std::uint8_t { Away, InLine, Has };
        Turn turn = Turn::Away;
        std::string tenant;                                   ///< the tenant in whose turn it runs
        std::map<std::string, std::shared_ptr<void>> places;  ///< held by tenants that want it
        bool done = false;
        std::exception_ptr failure;
        pool::ImageStages stages;
        std::string pool;
        TimePoint ended{};
    };
    using JobPtr = std::shared_ptr<Job>;
    struct Asked {
        std::string tenant;
        JobPtr job;
    };
    class ImageWait;

    std::optional<pool::KnownImage> allowed(const std::string& image);
    [[noreturn]] void refuse(const std::string& image) const;
    PoolPtr live(const std::string& name);
    PoolPtr ready(const std::string& image);
    /// Returns the image's job, of other claims too, for a claim of the tenant that will wait.
    JobPtr jobFor(const std::string& tenant, const std::string& image);
    /// Returns the outcome of a job, which may not have ended.
    Found outcomeOf(const Job& job);
    bool join(const JobPtr& job, const std::string& tenant) HEARTH_REQUIRES(mutex_);
    void lineUp(const JobPtr& job, const std::string& tenant) HEARTH_REQUIRES(mutex_);
    void giveTurns() HEARTH_REQUIRES(mutex_);
    void endTurn(Job& job) HEARTH_REQUIRES(mutex_);
    std::string make(const std::string& image, pool::ImageStages& stages);
    PoolSpec specFor(const std::string& image) const;
    bool collectionIsNext(TimePoint now) const HEARTH_REQUIRES(mutex_);
    void forgetOld(TimePoint now) HEARTH_REQUIRES(mutex_);
    void forgetGone() HEARTH_REQUIRES(mutex_);
    std::vector<std::string> unused(TimePoint now) HEARTH_REQUIRES(mutex_);

    const OnDemandRules rules_;
    const std::string default_pool_;
    pool::ImageRuntime& runtime_;
    SpecStore& specs_;
    const Supply supply_;
    ImageFetcher& images_;
    const History history_;
    Mutex mutex_;
    Subscribers subscribers_;                                       ///< claims that wait
    TenantPlaces places_;                                           ///< for jobs that wait or run
    WorkLine<Asked> line_ HEARTH_GUARDED_BY(mutex_);                // tenants in turns
    std::map<std::string, JobPtr> jobs_ HEARTH_GUARDED_BY(mutex_);  // by the image names in claims
    std::map<std::string, std::string> pool_of_ HEARTH_GUARDED_BY(mutex_);  // likewise, if ready
    std::map<std::string, TimePoint> used_ HEARTH_GUARDED_BY(mutex_);       // by pool
    std::size_t running_ HEARTH_GUARDED_BY(mutex_) = 0;                     // jobs
    bool collecting_ HEARTH_GUARDED_BY(mutex_) = false;                     // no job runs then
    /// Since when jobs have delayed a due collection.
    std::optional<TimePoint> due_since_ HEARTH_GUARDED_BY(mutex_);
    bool stopped_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::controller
