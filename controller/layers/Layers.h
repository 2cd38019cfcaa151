#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/Mutex.h"
#include "controller/layers/LayerBuilder.h"
#include "controller/packages/LayerLock.h"
#include "controller/queue/CircuitBreaker.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::controller {

/// The packages that pools install (`prewarm.packages`). Each set is resolved once, installed once
/// into a layer named by the digest of the result, and mounted by all sandboxes of all pools that
/// request it. want() requests a layer and never blocks; the work queue makes one layer at a time
/// and then reconciles the pools again. A set keeps its lock while a pool wants it, so a restart
/// neither resolves nor downloads. A set whose lock is deleted is resolved again; meanwhile the old
/// layer serves. Thread-safe.
class Layers {
public:
    Layers(pool::ContainerRuntime& runtime, LayerBuilder& builder, LayerLocks locks,
           SpecStore& specs, WorkQueue& work, CircuitBreaker& breaker, const History& history);

    enum class State { None, Making, Ready, Failed };
    struct View {
        State state = State::None;
        std::string digest;  ///< with Ready
        std::string lock;    ///< the file's name, with Ready
        std::vector<LockedPackage> packages;
        std::string why;  ///< with Failed; with Ready: why it could not be resolved again
        /// True if sandboxes can be made: the layer exists, or none is requested.
        bool good() const { return state == State::None || state == State::Ready; }
    };
    /// Returns the layer of a pool, and requests it at the first call.
    View want(const PoolSpec& spec);

    /// Prevents the removal of its layer.
    class [[nodiscard]] Pin {
    public:
        Pin() = default;
        Pin(Layers& layers, std::string digest) : layers_(&layers), digest_(std::move(digest)) {}
        Pin(Pin&& other) noexcept
            : layers_(std::exchange(other.layers_, nullptr)), digest_(std::move(other.digest_)) {}
        Pin& operator=(Pin&&) = delete;
        ~Pin();
        const std::string& digest() const { return digest_; }

    private:
        Layers* layers_ = nullptr;
        std::string digest_;
    };
    /// Held for a new sandbox of this image, from before its create until after; empty if the pool
    /// requests no packages. nullopt if the image has no layer: another image has this name now,
    /// and its layer is being made.
    std::optional<Pin> pin(const PoolSpec& spec, const std::string& image_digest);

    /// The work on keys ("layer", …) and ("layers", "all").
    ReconcileResult make(const std::string& key);
    ReconcileResult collect();
    /// Ends running builds soon, because the server stops.
    void stop() {
        stopped_ = true;
        builder_.stop();
    }

private:
    /// One image name with one list of packages.
    struct Set {
        std::string image;
        std::vector<std::string> specs;
        LayerRecord made;  ///< an empty layer: not made yet
        std::string failure;
        unsigned failures = 0;
        TimePoint retry_at{};
    };

    /// While it lives, no other thread makes or removes layers, or changes locks.
    class Turn;

    static std::string keyOf(const std::string& image, const std::vector<std::string>& specs);
    std::vector<PoolPtr> poolsOf(const std::string& key) const;
    /// Returns a record whose layer exists: an earlier one, or a new one.
    LayerRecord bring(const Set& set, const std::string& pool);
    ReconcileResult done(const std::string& key, LayerRecord record);
    ReconcileResult failed(const std::string& key, const std::string& why);
    void refresh(const std::vector<std::string>& there);
    std::set<std::string> needed(const std::vector<LayerRecord>& records);
    void removeUnused(const std::vector<std::string>& there);

    pool::ContainerRuntime& runtime_;
    LayerBuilder& builder_;
    const LayerLocks locks_;
    SpecStore& specs_;
    WorkQueue& work_;
    CircuitBreaker& breaker_;
    const History history_;
    std::atomic<bool> stopped_{false};
    Mutex mutex_;
    std::map<std::string, Set> sets_ HEARTH_GUARDED_BY(mutex_);          // by keyOf()
    std::multiset<std::string> pinned_ HEARTH_GUARDED_BY(mutex_);        // digests
    std::set<std::string> leaving_ HEARTH_GUARDED_BY(mutex_);            // digests being removed
    std::map<std::string, TimePoint> unused_ HEARTH_GUARDED_BY(mutex_);  // digests; since when
    bool making_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::controller
