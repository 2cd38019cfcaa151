#include "controller/layers/Layers.h"

#include <algorithm>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::controller {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(500);
constexpr auto kFirstBuildRetry = std::chrono::seconds(10);
constexpr auto kLastBuildRetry = std::chrono::minutes(10);
constexpr auto kCollectLayersEvery = std::chrono::minutes(1);
constexpr auto kKeepUnused = std::chrono::hours(1);

}  // namespace

Layers::Layers(pool::ContainerRuntime& runtime, LayerBuilder& builder, LayerLocks locks,
               SpecStore& specs, WorkQueue& work, CircuitBreaker& breaker, const History& history)
    : runtime_(runtime),
      builder_(builder),
      locks_(std::move(locks)),
      specs_(specs),
      work_(work),
      breaker_(breaker),
      history_(history) {}

class Layers::Turn {
public:
    explicit Turn(Layers& layers) : layers_(layers) {
        const MutexLock lock(layers_.mutex_);
        mine_ = !std::exchange(layers_.making_, true);
    }
    ~Turn() {
        if (!mine_) return;
        const MutexLock lock(layers_.mutex_);
        layers_.making_ = false;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// False: another thread has the turn.
    bool mine() const { return mine_; }

private:
    Layers& layers_;
    bool mine_ = false;
};

Layers::Pin::~Pin() {
    if (layers_ == nullptr) return;
    const MutexLock lock(layers_->mutex_);
    layers_->pinned_.erase(layers_->pinned_.find(digest_));
}

std::string Layers::keyOf(const std::string& image, const std::vector<std::string>& specs) {
    std::string text = image;
    for (const std::string& spec : specs) text += "\n" + spec;
    return toHex(sha256(text)).substr(0, 32);
}

std::vector<PoolPtr> Layers::poolsOf(const std::string& key) const {
    std::vector<PoolPtr> pools = specs_.all();
    std::erase_if(pools, [&](const PoolPtr& pool) {
        const PoolSpec& spec = pool->spec;
        return pool->deleting || !pool->refused.empty() || spec.prewarm_packages.empty() ||
               keyOf(spec.image, sortedSpecs(spec.prewarm_packages)) != key;
    });
    return pools;
}

Layers::View Layers::want(const PoolSpec& spec) {
    if (spec.prewarm_packages.empty()) return {};
    const std::vector<std::string> specs = sortedSpecs(spec.prewarm_packages);
    const std::string key = keyOf(spec.image, specs);
    View view;
    const MutexLock lock(mutex_);
    const auto [found, fresh] = sets_.try_emplace(key);
    const Set& set = found->second;
    if (fresh) {
        found->second.image = spec.image;
        found->second.specs = specs;
        work_.add({WorkKind::Layer, key});
    }
    view.why = set.failure;
    if (set.made.layer.empty()) {
        view.state = set.failure.empty() ? State::Making : State::Failed;
        return view;
    }
    view.state = State::Ready;
    view.digest = set.made.layer;
    view.lock = LayerLocks::nameOf(set.made.image_digest, set.specs);
    view.packages = set.made.lock.packages;
    return view;
}

std::optional<Layers::Pin> Layers::pin(const PoolSpec& spec, const std::string& image_digest) {
    if (spec.prewarm_packages.empty()) return Pin{};
    const std::string key = keyOf(spec.image, sortedSpecs(spec.prewarm_packages));
    const MutexLock lock(mutex_);
    const auto found = sets_.find(key);
    if (found == sets_.end() || found->second.made.layer.empty()) return std::nullopt;
    Set& set = found->second;
    if (set.made.image_digest != image_digest) {
        set.made = {};
        work_.add({WorkKind::Layer, key});
        return std::nullopt;
    }
    if (leaving_.contains(set.made.layer)) return std::nullopt;
    pinned_.insert(set.made.layer);
    return Pin{*this, set.made.layer};
}

ReconcileResult Layers::make(const std::string& key) {
    const Turn turn(*this);
    if (!turn.mine()) return ReconcileResult::after(kTurn);
    const std::vector<PoolPtr> pools = poolsOf(key);
    Set set;
    {
        const MutexLock lock(mutex_);
        const auto found = sets_.find(key);
        if (found == sets_.end()) return ReconcileResult::settled();
        if (pools.empty()) {  // no pool wants it any more
            sets_.erase(found);
            return ReconcileResult::settled();
        }
        if (history_.clock.now() < found->second.retry_at) {
            return ReconcileResult::after(found->second.retry_at - history_.clock.now());
        }
        set = found->second;
    }
    try {
        return done(key, bring(set, pools.front()->name));
    } catch (const Error& e) {
        if (stopped_) return ReconcileResult::settled();
        return failed(key, std::string(e.what()) + (e.hint().empty() ? "" : "; " + e.hint()));
    } catch (const std::exception& e) {
        // The reason goes to the log; the pools only get a hint.
        history_.log.error("layer.failed", {{"image", set.image}, {"error", e.what()}});
        return failed(key, "an operator can see the reason in the server's log");
    }
}

LayerRecord Layers::bring(const Set& set, const std::string& pool) {
    const std::vector<std::string> there = runtime_.layers();  // throws if there can be none
    const auto has = [&there](const std::string& digest) {
        return std::find(there.begin(), there.end(), digest) != there.end();
    };
    LayerRecord record{set.image, runtime_.resolveImage(set.image), set.specs, {}, {}};
    const auto known = locks_.find(record.image_digest, set.specs);
    if (known && has(known->layer)) return *known;
    history_.log.info("layer.making", {{"pool", pool},
                                       {"image", set.image},
                                       {"packages", set.specs.size()},
                                       {"locked", known.has_value()}});
    const TimePoint begin = history_.clock.now();
    BuiltLayer built = builder_.build(
        {set.image, record.image_digest, pool, set.specs, known ? known->lock.text : ""});
    record.lock = std::move(built.lock);
    record.layer = layerDigest(record.image_digest, record.lock);
    runtime_.addLayer(record.layer, built.tar.get());
    locks_.put(record);
    history_.log.info("layer.made", {{"layer", record.layer},
                                     {"image", set.image},
                                     {"packages", record.lock.packages.size()},
                                     {"seconds", toSeconds(history_.clock.now() - begin)}});
    return record;
}

ReconcileResult Layers::done(const std::string& key, LayerRecord record) {
    unsigned failures = 0;
    bool news = false;
    {
        const MutexLock lock(mutex_);
        const auto found = sets_.find(key);
        if (found == sets_.end()) return ReconcileResult::settled();
        Set& set = found->second;
        failures = set.failures;
        news = set.made.layer != record.layer;
        unused_.erase(record.layer);
        set.made = std::move(record);
        set.failure.clear();
        set.failures = 0;
        set.retry_at = {};
    }
    for (const PoolPtr& pool : poolsOf(key)) {
        // Earlier failures had other packages, or none.
        if (news || failures > 0) breaker_.forget(pool->name);
        if (news) {
            history_.events.publish({.type = "pool.packages_installed",
                                     .resource = pool->name,
                                     .pool = pool->name,
                                     .reason = "Installed",
                                     .message = "its sandboxes have their packages"});
        }
        work_.add({WorkKind::Pool, pool->name});
    }
    return ReconcileResult::settled();
}

ReconcileResult Layers::failed(const std::string& key, const std::string& why) {
    bool news = false;
    std::chrono::nanoseconds delay = kLastBuildRetry;
    {
        const MutexLock lock(mutex_);
        const auto found = sets_.find(key);
        if (found == sets_.end()) return ReconcileResult::settled();
        Set& set = found->second;
        news = set.failure != why;
        set.failure = why;
        delay = std::min<std::chrono::nanoseconds>(
            kFirstBuildRetry * (1U << std::min(set.failures, 8U)), kLastBuildRetry);
        ++set.failures;
        set.retry_at = history_.clock.now() + delay;
    }
    history_.log.warn("layer.not_made", {{"why", why}, {"again_in_s", toSeconds(delay)}});
    for (const PoolPtr& pool : poolsOf(key)) {
        if (news) {
            history_.events.publish({.type = "pool.packages_failed",
                                     .resource = pool->name,
                                     .pool = pool->name,
                                     .reason = "Failed",
                                     .message = why});
        }
        work_.add({WorkKind::Pool, pool->name});
    }
    return ReconcileResult::after(delay);
}

ReconcileResult Layers::collect() {
    const Turn turn(*this);
    if (!turn.mine()) return ReconcileResult::after(kTurn);
    try {
        const std::vector<std::string> there = runtime_.layers();
        refresh(there);
        removeUnused(there);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Unsupported) throw;  // Unsupported: there are no layers
    }
    return ReconcileResult::after(kCollectLayersEvery);
}

/// Re-resolves sets whose lock was deleted, and rebuilds missing layers.
void Layers::refresh(const std::vector<std::string>& there) {
    std::map<std::string, LayerRecord> made;
    {
        const MutexLock lock(mutex_);
        for (const auto& [key, set] : sets_) {
            if (!set.made.layer.empty()) made.emplace(key, set.made);
        }
    }
    for (const auto& [key, record] : made) {
        const bool gone = std::find(there.begin(), there.end(), record.layer) == there.end();
        // Reads a file, so it runs outside the lock that every look at a pool takes.
        if (!gone && locks_.find(record.image_digest, record.specs)) continue;
        {
            const MutexLock lock(mutex_);
            const auto found = sets_.find(key);
            if (found == sets_.end() || found->second.made.layer != record.layer) continue;
            if (gone) found->second.made = {};
        }
        work_.add({WorkKind::Layer, key});
    }
}

/// The layers that declared pools have, or will have again.
std::set<std::string> Layers::needed(const std::vector<LayerRecord>& records) {
    std::set<std::string> keys;
    for (const PoolPtr& pool : specs_.all()) {
        if (pool->deleting || pool->spec.prewarm_packages.empty()) continue;
        keys.insert(keyOf(pool->spec.image, sortedSpecs(pool->spec.prewarm_packages)));
    }
    std::set<std::string> digests;
    const MutexLock lock(mutex_);
    std::erase_if(sets_, [&](const auto& each) { return !keys.contains(each.first); });
    for (const auto& [key, set] : sets_) {
        if (!set.made.layer.empty()) digests.insert(set.made.layer);
    }
    for (const LayerRecord& record : records) {
        const std::string key = keyOf(record.image, record.specs);
        const auto set = sets_.find(key);
        // The layer of a replaced image is no longer needed.
        const bool replaced = set != sets_.end() && !set->second.made.layer.empty() &&
                              set->second.made.image_digest != record.image_digest;
        if (keys.contains(key) && !replaced) digests.insert(record.layer);
    }
    return digests;
}

void Layers::removeUnused(const std::vector<std::string>& there) {
    const std::vector<LayerRecord> records = locks_.all();
    const std::set<std::string> used = needed(records);
    // From now on no new sandbox gets one of these; older sandboxes with one are found below.
    std::set<std::string> leaving;
    {
        const MutexLock lock(mutex_);
        for (const std::string& digest : there) {
            if (!used.contains(digest) && !pinned_.contains(digest)) leaving.insert(digest);
        }
        leaving_ = leaving;
    }
    const ScopeExit stay([this] {
        const MutexLock lock(mutex_);
        leaving_.clear();
    });
    if (!leaving.empty()) {
        for (const pool::SandboxInfo& info : runtime_.list()) {
            const auto label = info.labels.find(kLayerLabel);
            if (label != info.labels.end()) leaving.erase(label->second);
        }
    }
    const TimePoint now = history_.clock.now();
    {
        const MutexLock lock(mutex_);
        std::erase_if(unused_, [&](const auto& each) { return !leaving.contains(each.first); });
        std::erase_if(leaving, [&](const std::string& digest) HEARTH_REQUIRES(mutex_) {
            return now - unused_.try_emplace(digest, now).first->second < kKeepUnused;
        });
    }
    for (const std::string& digest : leaving) {
        for (const LayerRecord& record : records) {
            if (record.layer == digest) locks_.remove(record);
        }
        runtime_.removeLayer(digest);
        history_.log.info("layer.removed", {{"layer", digest}});
    }
}

}  // namespace hearth::controller
