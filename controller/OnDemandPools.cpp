#include "controller/OnDemandPools.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostJobs = 16;
constexpr std::size_t kMostRunning = 2;
constexpr std::size_t kMostNames = 1000;
constexpr auto kPaceJobs = std::chrono::milliseconds(200);
constexpr auto kLookAgain = std::chrono::milliseconds(100);
/// A failure is told again this long without another attempt.
constexpr auto kFailureHolds = std::chrono::seconds(5);
constexpr auto kCollectEvery = std::chrono::minutes(10);
constexpr auto kCollectSoonest = std::chrono::seconds(1);
constexpr std::size_t kHexAt = 7;  // behind "sha256:"
constexpr std::size_t kDigits = 12;
constexpr std::size_t kMostListed = 12;

/// Two spellings of one reference share what is done for it.
std::string canonical(const std::string& image) {
    if (pool::image::isDigest(image) || pool::image::isImageName(image)) return image;
    const auto reference = pool::image::parseReference(image);
    return reference ? reference->text() : image;
}

std::string poolName(const std::string& digest) {
    return std::string(kOnDemandPrefix) + digest.substr(kHexAt, kDigits);
}

}  // namespace

OnDemandPools::OnDemandPools(OnDemandRules rules, pool::ContainerRuntime& runtime, SpecStore& specs,
                             pool::WarmPool& warm, ClaimQueue& claims, WorkQueue& work,
                             EventLog& events, metrics::Metrics& metrics, metrics::Log& log,
                             std::string default_pool, const Clock& clock)
    : rules_(std::move(rules)),
      runtime_(runtime),
      specs_(specs),
      warm_(warm),
      claims_(claims),
      work_(work),
      events_(events),
      metrics_(metrics),
      log_(log),
      default_pool_(std::move(default_pool)),
      clock_(clock) {}

void OnDemandPools::refuse(const std::string& image) const {
    std::string images;
    std::size_t listed = 0;
    for (const PoolPtr& pool : specs_.all()) {
        if (pool->deleting || !pool->on_demand.empty() || ++listed > kMostListed) continue;
        images += (images.empty() ? "" : ", ") + pool->spec.image + " (pool " + pool->name + ")";
    }
    const std::string pools = images.empty() ? "no pool is declared" : "pools have: " + images;
    if (rules_.allow.empty()) {
        throw Error(ErrorCode::InvalidSpec, "no pool has image " + image)
            .field("/image", pools)
            .hint(pools +
                  "; an operator declares more with hearth apply -f, or allows images "
                  "without a pool by images.onDemand");
    }
    throw Error(ErrorCode::InvalidSpec,
                "no pool has image " + image + ", and it is not allowed without one")
        .field("/image", "allowed without a pool: " + rules_.allow.text())
        .hint("use an image that is allowed (" + rules_.allow.text() + "), or one of a pool; " +
              pools);
}

/// What the runtime knows of an image that claims may have; nullopt if it has to be fetched.
std::optional<pool::KnownImage> OnDemandPools::allowed(const std::string& image) {
    if (rules_.allow.empty()) refuse(image);
    std::optional<pool::KnownImage> known = runtime_.knownImage(image);
    const auto may = [this](const std::string& name) { return rules_.allow.allows(name); };
    const bool by_name = known && std::any_of(known->names.begin(), known->names.end(), may);
    if (!by_name && !may(image)) refuse(image);
    if (!known && pool::image::isDigest(image)) {
        throw Error(ErrorCode::InvalidSpec, "there is no image " + image)
            .hint("name it with its repository, as repository@sha256:…, to have it fetched");
    }
    return known;
}

PoolPtr OnDemandPools::live(const std::string& name) {
    PoolPtr pool = specs_.find(name);
    return pool && !pool->deleting && !pool->on_demand.empty() ? pool : nullptr;
}

/// The pool that claims of this name had before.
PoolPtr OnDemandPools::ready(const std::string& image) {
    const std::lock_guard lock(mutex_);
    const auto known = pool_of_.find(image);
    if (known == pool_of_.end() || collecting_) return nullptr;
    PoolPtr pool = live(known->second);
    if (pool) {
        used_[pool->name] = clock_.now();
    } else {
        pool_of_.erase(known);
    }
    return pool;
}

OnDemandPools::Found OnDemandPools::poolFor(const std::string& wanted, const Patience& patience) {
    const std::string image = canonical(wanted);
    if (PoolPtr pool = ready(image)) {
        // The template follows the default pool's.
        const PoolSpec spec = specFor(pool->spec.image);
        if (pool->spec == spec) return {std::move(pool), {}};
    }
    allowed(image);  // who may not have it waits for nothing
    return await(image, patience);
}

OnDemandPools::Found OnDemandPools::await(const std::string& image, const Patience& patience) {
    const TimePoint until =
        clock_.now() + std::min<std::chrono::milliseconds>(rules_.max_wait, patience.most);
    std::unique_lock lock(mutex_);
    const auto known = jobs_.find(image);
    JobPtr job = known == jobs_.end() ? nullptr : known->second;
    // What was done for earlier claims is no answer to this one, but for a failure just now.
    if (job && job->done && (!job->failure || clock_.now() - job->ended > kFailureHolds)) {
        job = nullptr;
    }
    if (!patience.waits && !(job && job->done)) throw MustWait("image " + image);
    if (!job) {
        forgetOld(clock_.now());
        const auto open = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& each) {
            return each.second && !each.second->done;
        });
        if (static_cast<std::size_t>(open) >= kMostJobs) {
            throw Error(ErrorCode::Unavailable, "too many images are being fetched")
                .hint("try again in a moment")
                .retryAfter(std::chrono::seconds(10));
        }
        job = jobs_[image] = std::make_shared<Job>();
        work_.add({"image", image});
    }
    const auto over = [&] { return job->done || stopped_ || clock_.now() >= until; };
    while (!over() && !patience.stop.stop_requested()) {
        changed_.wait_for(
            lock, patience.stop,
            std::min<std::chrono::nanoseconds>(until - clock_.now(), std::chrono::seconds(1)),
            over);
    }
    if (stopped_) throw Error(ErrorCode::Unavailable, "the server is shutting down");
    if (!job->done && patience.stop.stop_requested()) throw takenBack();
    if (!job->done) {
        throw Error(ErrorCode::Unavailable, "image " + image + " is not ready yet")
            .hint("it is being fetched still: try again after Retry-After")
            .retryAfter(std::chrono::seconds(10));
    }
    if (job->failure) std::rethrow_exception(job->failure);
    used_[job->pool] = clock_.now();
    PoolPtr pool = live(job->pool);
    if (!pool) {
        throw Error(ErrorCode::Unavailable, "the pool of image " + image + " has just gone")
            .hint("try again")
            .retryAfter(std::chrono::seconds(1));
    }
    return {std::move(pool), job->stages};
}

void OnDemandPools::forgetOld(TimePoint now) {
    std::erase_if(jobs_, [&](const auto& each) {
        return !each.second || (each.second->done && now - each.second->ended > kFailureHolds);
    });
    if (pool_of_.size() > kMostNames) pool_of_.clear();
}

ReconcileResult OnDemandPools::prepare(const std::string& image) {
    JobPtr job;
    {
        const std::lock_guard lock(mutex_);
        const auto found = jobs_.find(image);
        if (found == jobs_.end() || found->second->done) return ReconcileResult::settled();
        if (collecting_ || running_ >= kMostRunning) return ReconcileResult::after(kPaceJobs);
        job = found->second;
        ++running_;
    }
    pool::ImageStages stages;
    std::string pool;
    std::exception_ptr failure;
    try {
        pool = make(image, stages);
    } catch (const std::exception& e) {
        // Told to whom it concerns: the claims that wait, and the log.
        failure = std::current_exception();
        log_.warn("image.not_ready", {{"image", image}, {"error", e.what()}});
    }
    {
        const std::lock_guard lock(mutex_);
        --running_;
        if (!failure && pool.empty()) return ReconcileResult::after(kLookAgain);
        job->done = true;
        job->failure = failure;
        job->stages = stages;
        job->pool = pool;
        job->ended = clock_.now();
        if (!failure) {
            used_[pool] = clock_.now();
            pool_of_[image] = pool;
        }
    }
    changed_.notify_all();
    return ReconcileResult::settled();
}

/// Fetches the image if need be, makes it ready and declares its pool; gives the pool's name, or
/// nothing where an earlier pool of that name has not gone yet.
std::string OnDemandPools::make(const std::string& image, pool::ImageStages& stages) {
    try {
        std::optional<pool::KnownImage> known = allowed(image);
        if (!known) {
            pool::ImageFetch fetch{image};
            const std::string host =
                registryOf(pool::image::parseReference(image).value().repository);
            fetch.insecure =
                std::find(rules_.insecure_registries.begin(), rules_.insecure_registries.end(),
                          host) != rules_.insecure_registries.end();
            log_.info("image.fetching", {{"image", image}});
            known = runtime_.fetchImage(fetch, stages);
            log_.info("image.fetched", {{"image", image},
                                        {"digest", known->digest},
                                        {"seconds", toSeconds(stages.pull + stages.unpack)}});
            events_.publish({.type = "image.fetched",
                             .resource = known->digest,
                             .reason = "claimed",
                             .message = "image " + image + " was fetched for a claim"});
        }
        const TimePoint begin = clock_.now();
        runtime_.resolveImage(known->pinned);
        const auto took = clock_.now() - begin;
        // Finding what is ready already is no stage.
        if (took > std::chrono::milliseconds(20)) stages.unpack += took;
        Pool pool;
        pool.name = poolName(known->digest);
        pool.spec = specFor(known->pinned);
        const PoolPtr before = specs_.find(pool.name);
        if (before && before->deleting) return {};
        pool.on_demand = before && !before->on_demand.empty() ? before->on_demand : image;
        bool created = false;
        const PoolPtr kept =
            specs_.put(std::move(pool), SpecStore::Mode::CreateOrReplace, std::nullopt, created);
        if (created) metrics_.bornPool(kept->name);
        work_.add({"pool", kept->name});
        return kept->name;
    } catch (const Error& e) {
        const bool about_image = e.code() == ErrorCode::NotFound ||
                                 e.code() == ErrorCode::InvalidArgument ||
                                 e.code() == ErrorCode::InvalidSpec;
        if (!about_image || !e.fields().empty()) throw;
        throw Error(ErrorCode::InvalidSpec, e.what()).field("/image", e.what()).hint(e.hint());
    } catch (const std::exception& e) {
        log_.error("image.failed", {{"image", image}, {"error", e.what()}});
        throw Error(ErrorCode::Unavailable, "image " + image + " could not be made ready")
            .hint("an operator finds the reason in the server's log");
    }
}

/// As the default pool's, but for the image, the digest instead of a tag, and nothing kept warm.
PoolSpec OnDemandPools::specFor(const std::string& image) const {
    PoolSpec spec;
    PoolPtr like;
    for (const PoolPtr& pool : specs_.all()) {
        if (pool->deleting || !pool->on_demand.empty() || !pool->refused.empty()) continue;
        if (!like || pool->name == default_pool_) like = pool;
    }
    if (like) spec = like->spec;
    spec.image = image;
    spec.allow_tags = false;
    spec.prewarm_packages.clear();  // chosen for an image that this one need not resemble
    spec.warm_min = 0;
    spec.warm_max = std::max<std::uint32_t>(rules_.max_sandboxes, 1);
    spec.max_members = spec.warm_max;
    spec.on_empty = OnEmpty::Create;
    spec.max_wait = std::max<std::chrono::milliseconds>(spec.max_wait, std::chrono::minutes(1));
    return spec;
}

std::vector<std::string> OnDemandPools::unused(TimePoint now) {
    std::vector<std::string> names;
    for (const PoolPtr& pool : specs_.all()) {
        if (pool->on_demand.empty() || pool->deleting) continue;
        const bool idle = warm_.counts(pool->name).total() == 0 && claims_.waiting(pool->name) == 0;
        TimePoint& used = used_.try_emplace(pool->name, now).first->second;
        if (!idle) used = now;
        // What is allowed no more has no claims to wait for.
        if (idle && (now - used >= rules_.keep || rules_.allow.empty()))
            names.push_back(pool->name);
    }
    return names;
}

ReconcileResult OnDemandPools::collect() {
    std::vector<std::string> leaving;
    {
        const std::lock_guard lock(mutex_);
        if (running_ > 0) return ReconcileResult::after(kCollectSoonest);
        collecting_ = true;  // no pool is made until the end, and none is given to a claim
        leaving = unused(clock_.now());
        for (const std::string& name : leaving) {
            used_.erase(name);
            std::erase_if(pool_of_, [&](const auto& each) { return each.second == name; });
        }
    }
    struct Open {
        OnDemandPools& pools;
        ~Open() {
            const std::lock_guard lock(pools.mutex_);
            pools.collecting_ = false;
        }
    } const open{*this};
    for (const std::string& name : leaving) {
        specs_.markDeleting(name);
        work_.add({"pool", name});
        log_.info("pool.unused", {{"pool", name}});
    }
    std::vector<std::string> wanted;
    for (const PoolPtr& pool : specs_.all()) {
        if (!pool->deleting) wanted.push_back(pool->spec.image);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    runtime_.collectImages(wanted);
    return ReconcileResult::after(
        std::clamp<std::chrono::nanoseconds>(rules_.keep / 2, kCollectSoonest, kCollectEvery));
}

void OnDemandPools::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    runtime_.stopFetching();
    changed_.notify_all();
}

}  // namespace hearth::controller
