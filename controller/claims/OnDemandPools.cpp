#include "controller/claims/OnDemandPools.h"

#include <algorithm>

#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostJobs = 256;
constexpr std::size_t kMostJobsOfTenant = 16;
/// How many jobs run: the last slot is only for a tenant that has no job running.
constexpr LaneRules kTurns{"images of claims", 3, 1};
constexpr std::size_t kMostNames = 1000;
constexpr auto kPaceJobs = std::chrono::milliseconds(200);
constexpr auto kMakeAgain = std::chrono::milliseconds(100);
/// A failure is repeated for this long without another attempt.
constexpr auto kFailureHolds = std::chrono::seconds(5);
constexpr auto kCollectEvery = std::chrono::minutes(10);
constexpr auto kCollectSoonest = std::chrono::seconds(1);
/// A due collection lets no job begin for the first limit. Then jobs may begin again, because a
/// running one may take minutes; after the second limit none begins until the collection has run.
constexpr auto kJobsWait = std::chrono::seconds(30);
constexpr auto kCollectionWaits = std::chrono::minutes(10);
constexpr std::size_t kHexAt = 7;  // after "sha256:"
constexpr std::size_t kDigits = 12;
constexpr std::size_t kMostListed = 12;

/// Two spellings of one reference share one job.
std::string canonical(const std::string& image) {
    if (pool::image::isDigest(image) || pool::image::isImageName(image)) return image;
    const auto reference = pool::image::parseReference(image);
    return reference ? reference->text() : image;
}

std::string poolName(const std::string& digest) {
    return std::string(kOnDemandPrefix) + digest.substr(kHexAt, kDigits);
}

}  // namespace

OnDemandPools::OnDemandPools(OnDemandRules rules, std::string default_pool,
                             pool::ImageRuntime& runtime, SpecStore& specs, const Supply& supply,
                             ImageFetcher& images, const History& history)
    : rules_(std::move(rules)),
      default_pool_(std::move(default_pool)),
      runtime_(runtime),
      specs_(specs),
      supply_(supply),
      images_(images),
      history_(history),
      places_(kMostJobs, kMostJobsOfTenant),
      line_(kTurns) {}

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
                  "; an operator can declare more with hearth apply -f, or allow images without a "
                  "pool with images.onDemand");
    }
    throw Error(ErrorCode::InvalidSpec,
                "no pool has image " + image + ", and this image is not allowed without a pool")
        .field("/image", "allowed without a pool: " + rules_.allow.text())
        .hint("use an allowed image (" + rules_.allow.text() + ") or the image of a pool; " +
              pools);
}

/// Returns the runtime's facts of an image that claims may use; nullopt if it must be fetched.
std::optional<pool::KnownImage> OnDemandPools::allowed(const std::string& image) {
    if (rules_.allow.empty()) refuse(image);
    std::optional<pool::KnownImage> known = runtime_.knownImage(image);
    const auto may = [this](const std::string& name) { return rules_.allow.allows(name); };
    const bool by_name = known && std::any_of(known->names.begin(), known->names.end(), may);
    if (!by_name && !may(image)) refuse(image);
    if (!known && pool::image::isDigest(image)) {
        throw Error(ErrorCode::InvalidSpec, "there is no image " + image)
            .hint("to have it fetched, name it with its repository: repository@sha256:…");
    }
    return known;
}

PoolPtr OnDemandPools::live(const std::string& name) {
    PoolPtr pool = specs_.find(name);
    return pool && !pool->deleting && !pool->on_demand.empty() ? pool : nullptr;
}

/// Returns the pool that earlier claims of this image name got.
PoolPtr OnDemandPools::ready(const std::string& image) {
    const MutexLock lock(mutex_);
    const auto known = pool_of_.find(image);
    if (known == pool_of_.end() || collecting_) return nullptr;
    PoolPtr pool = live(known->second);
    if (pool) {
        used_[pool->name] = history_.clock.now();
    } else {
        pool_of_.erase(known);
    }
    return pool;
}

/// A claim's wait for an image.
class OnDemandPools::ImageWait final : public Waitable {
public:
    ImageWait(OnDemandPools& pools, JobPtr job, TimePoint until)
        : pools_(pools), job_(std::move(job)), until_(until) {}

    bool ready() const override {
        const MutexLock lock(pools_.mutex_);
        return job_->done || pools_.stopped_;
    }
    TimePoint until() const override { return until_; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return pools_.subscribers_.add(std::move(wake));
    }
    std::optional<Progress> progress() const override {
        return Progress{"image " + job_->image, 0, 0, {}};
    }

private:
    OnDemandPools& pools_;
    const JobPtr job_;
    const TimePoint until_;
};

Task<OnDemandPools::Found> OnDemandPools::poolFor(std::string tenant, std::string image,
                                                  std::chrono::milliseconds patience) {
    image = canonical(image);
    if (PoolPtr pool = ready(image)) {
        // Its template follows changes of the default pool's.
        const PoolSpec spec = specFor(pool->spec.image);
        if (pool->spec == spec) co_return Found{std::move(pool), {}};
    }
    allowed(image);  // a forbidden image fails before any wait
    const TimePoint until =
        history_.clock.now() + std::min<std::chrono::milliseconds>(rules_.max_wait, patience);
    const JobPtr job = jobFor(tenant, image);
    auto wait = std::make_shared<ImageWait>(*this, job, until);
    co_await wait;
    co_return outcomeOf(*job);
}

/// Lets the job also run in this tenant's turn, which may come before another tenant's; false if
/// the tenant has no place for one more.
bool OnDemandPools::join(const JobPtr& job, const std::string& tenant) {
    if (job->places.contains(tenant)) return true;
    std::shared_ptr<void> place = places_.take(tenant);
    if (!place) return false;
    job->places.emplace(tenant, std::move(place));
    if (job->turn != Job::Turn::Has) lineUp(job, tenant);
    return true;
}

void OnDemandPools::lineUp(const JobPtr& job, const std::string& tenant) {
    job->turn = Job::Turn::InLine;
    line_.push(tenant, {tenant, job});
    giveTurns();
}

void OnDemandPools::giveTurns() {
    while (const std::optional<Asked> next = line_.pop()) {
        Job& job = *next->job;
        if (job.turn != Job::Turn::InLine) {  // another tenant's turn came first
            line_.done(next->tenant);
            continue;
        }
        job.turn = Job::Turn::Has;
        job.tenant = next->tenant;
        supply_.work.add({WorkKind::Image, job.image, job.tenant});
    }
}

void OnDemandPools::endTurn(Job& job) {
    job.turn = Job::Turn::Away;
    line_.done(job.tenant);
    giveTurns();
}

OnDemandPools::JobPtr OnDemandPools::jobFor(const std::string& tenant, const std::string& image) {
    const MutexLock lock(mutex_);
    const auto known = jobs_.find(image);
    JobPtr job = known == jobs_.end() ? nullptr : known->second;
    // A finished job of earlier claims is not reused, except a recent failure.
    if (job && job->done && (!job->failure || history_.clock.now() - job->ended > kFailureHolds)) {
        job = nullptr;
    }
    if (job) {
        if (!job->done) join(job, tenant);  // without a place of its own: in the others' turn
        return job;
    }
    forgetOld(history_.clock.now());
    job = std::make_shared<Job>();
    job->image = image;
    if (!join(job, tenant)) {
        throw Error(ErrorCode::Unavailable, "too many images are being fetched")
            .hint("try again in a moment")
            .retryAfter(std::chrono::seconds(10));
    }
    jobs_[image] = job;
    return job;
}

OnDemandPools::Found OnDemandPools::outcomeOf(const Job& job) {
    const MutexLock lock(mutex_);
    if (stopped_) throw Error(ErrorCode::Unavailable, "the server is shutting down");
    if (!job.done) {
        throw Error(ErrorCode::Unavailable, "image " + job.image + " is not ready yet")
            .hint("it is still being fetched: try again after Retry-After")
            .retryAfter(std::chrono::seconds(10));
    }
    if (job.failure) std::rethrow_exception(job.failure);
    used_[job.pool] = history_.clock.now();
    PoolPtr pool = live(job.pool);
    if (!pool) {
        throw Error(ErrorCode::Unavailable, "the pool of image " + job.image + " has just gone")
            .hint("try again")
            .retryAfter(std::chrono::seconds(1));
    }
    return {std::move(pool), job.stages};
}

void OnDemandPools::forgetOld(TimePoint now) {
    std::erase_if(jobs_, [&](const auto& each) {
        return !each.second || (each.second->done && now - each.second->ended > kFailureHolds);
    });
    if (pool_of_.size() > kMostNames) pool_of_.clear();
}

/// Returns whether a new job would delay a collection: otherwise claims for absent images, one
/// after the other, would prevent it for ever.
bool OnDemandPools::collectionIsNext(TimePoint now) const {
    if (!due_since_) return false;
    const auto waited = now - *due_since_;
    return waited < kJobsWait || waited > kCollectionWaits;
}

/// Forgets the names of pools that are gone for other reasons than disuse: deleted, or refused.
void OnDemandPools::forgetGone() {
    std::erase_if(pool_of_, [&](const auto& each) { return !live(each.second); });
    std::erase_if(used_, [&](const auto& each) { return !live(each.first); });
}

std::size_t OnDemandPools::remembered() {
    const MutexLock lock(mutex_);
    return jobs_.size() + pool_of_.size() + used_.size();
}

ReconcileResult OnDemandPools::prepare(const std::string& image) {
    JobPtr job;
    {
        const MutexLock lock(mutex_);
        const auto found = jobs_.find(image);
        if (found == jobs_.end() || found->second->done) return ReconcileResult::settled();
        job = found->second;
        if (job->turn != Job::Turn::Has) {  // that turn adds the key again
            if (job->turn == Job::Turn::Away) lineUp(job, job->tenant);
            return ReconcileResult::settled();
        }
        if (collecting_ || collectionIsNext(history_.clock.now())) {
            return ReconcileResult::after(kPaceJobs);
        }
        ++running_;
    }
    pool::ImageStages stages;
    std::string pool;
    std::exception_ptr failure;
    try {
        pool = make(image, stages);
    } catch (const std::exception& e) {
        // Passed on to the waiting claims, and to the log.
        failure = std::current_exception();
        history_.log.warn("image.not_ready", {{"image", image}, {"error", e.what()}});
    }
    {
        const MutexLock lock(mutex_);
        --running_;
        endTurn(*job);
        if (!failure && pool.empty()) return ReconcileResult::after(kMakeAgain);
        job->done = true;
        job->places.clear();
        job->failure = failure;
        job->stages = stages;
        job->pool = pool;
        job->ended = history_.clock.now();
        if (!failure) {
            used_[pool] = history_.clock.now();
            pool_of_[image] = pool;
        }
    }
    subscribers_.notify();
    return ReconcileResult::settled();
}

/// Fetches the image if necessary, makes it ready and declares its pool. Returns the pool's name,
/// or nothing if an earlier pool of that name is not gone yet.
std::string OnDemandPools::make(const std::string& image, pool::ImageStages& stages) {
    try {
        std::optional<pool::KnownImage> known = allowed(image);
        if (!known) known = images_.fetch(image, stages);
        const TimePoint begin = history_.clock.now();
        const std::string name = poolName(known->digest);
        // A counter that appears with a slow claim hides that claim: scrapes come while it unpacks.
        if (!specs_.find(name)) history_.metrics.bornPool(name);
        const ScopeExit unborn([&] {
            if (!specs_.find(name)) history_.metrics.forgetPool(name);
        });
        runtime_.resolveImage(known->pinned);
        const auto took = history_.clock.now() - begin;
        // An image that was already ready adds no stage.
        if (took > std::chrono::milliseconds(20)) stages.unpack += took;
        Pool pool;
        pool.name = name;
        pool.spec = specFor(known->pinned);
        const PoolPtr before = specs_.find(pool.name);
        if (before && before->deleting) return {};
        pool.on_demand = before && !before->on_demand.empty() ? before->on_demand : image;
        bool created = false;
        const PoolPtr kept =
            specs_.put(std::move(pool), SpecStore::Mode::CreateOrReplace, std::nullopt, created);
        if (created) history_.metrics.bornPool(kept->name);  // an earlier pool may have just gone
        supply_.work.add({WorkKind::Pool, kept->name});
        return kept->name;
    } catch (const Error& e) {
        const bool about_image = e.code() == ErrorCode::NotFound ||
                                 e.code() == ErrorCode::InvalidArgument ||
                                 e.code() == ErrorCode::InvalidSpec;
        if (!about_image || !e.fields().empty()) throw;
        throw Error(ErrorCode::InvalidSpec, e.what()).field("/image", e.what()).hint(e.hint());
    } catch (const std::exception& e) {
        history_.log.error("image.failed", {{"image", image}, {"error", e.what()}});
        throw Error(ErrorCode::Unavailable, "image " + image + " could not be made ready")
            .hint("an operator can see the reason in the server's log");
    }
}

/// The default pool's spec, except: this image, a digest and no tag, and nothing kept warm.
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
    spec.prewarm_packages.clear();  // chosen for another image, which may differ from this one
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
        const bool idle =
            supply_.warm.counts(pool->name).total() == 0 && supply_.line.waiting(pool->name) == 0;
        TimePoint& used = used_.try_emplace(pool->name, now).first->second;
        if (!idle) used = now;
        // An image that is no longer allowed has no waiting claims.
        if (idle && (now - used >= rules_.keep || rules_.allow.empty()))
            names.push_back(pool->name);
    }
    return names;
}

ReconcileResult OnDemandPools::collect() {
    std::vector<std::string> leaving;
    {
        const MutexLock lock(mutex_);
        if (running_ > 0) {
            if (!due_since_) due_since_ = history_.clock.now();
            return ReconcileResult::after(kCollectSoonest);
        }
        due_since_.reset();
        collecting_ = true;  // until the end no pool is made, and none is given to a claim
        forgetOld(history_.clock.now());
        forgetGone();
        leaving = unused(history_.clock.now());
        for (const std::string& name : leaving) {
            used_.erase(name);
            std::erase_if(pool_of_, [&](const auto& each) { return each.second == name; });
        }
    }
    const ScopeExit open([this] {
        const MutexLock lock(mutex_);
        collecting_ = false;
    });
    for (const std::string& name : leaving) {
        specs_.markDeleting(name);
        supply_.work.add({WorkKind::Pool, name});
        history_.log.info("pool.unused", {{"pool", name}});
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
        const MutexLock lock(mutex_);
        stopped_ = true;
    }
    runtime_.stopFetching();
    subscribers_.notify();
}

}  // namespace hearth::controller
