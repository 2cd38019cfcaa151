#include "controller/claims/PoolChooser.h"

#include <algorithm>

#include "controller/contract/RequestLimits.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {

namespace {

std::string gpusText(const Pool& pool) {
    const GpuSpec& spec = pool.spec.gpu;
    if (spec.count == 0) return "no GPU";
    std::string text = std::to_string(spec.count) + (spec.count == 1 ? " GPU" : " GPUs");
    for (std::size_t i = 0; i < spec.products.size(); ++i) {
        text += (i == 0 ? " of " : " or ") + spec.products[i];
    }
    return text;
}

/// `some`: there are pools that would fit except for their GPUs.
Error noGpus(const std::vector<PoolPtr>& pools, bool some, const GpuWish& wish) {
    std::string there;
    for (const PoolPtr& pool : pools) {
        if (pool->deleting || pool->spec.gpu.count == 0 || !pool->on_demand.empty()) continue;
        there += (there.empty() ? "" : ", ") + pool->name + " (" + gpusText(*pool) + ")";
    }
    Error error(ErrorCode::InvalidSpec, "no pool" + std::string(some ? "" : " of this image") +
                                            " has sandboxes with " + std::to_string(wish.count) +
                                            (wish.count == 1 ? " GPU" : " GPUs") +
                                            (wish.product.empty() ? "" : " of " + wish.product));
    error.field("/gpu", there.empty() ? "no pool has GPUs" : "the pools with GPUs are " + there);
    error.hint("an operator can declare one with template.gpu");
    return error;
}

}  // namespace

NoLanguage::NoLanguage(const std::string& who, const std::string& language,
                       const std::set<std::string>& known)
    : Error(ErrorCode::InvalidSpec, who + " language " + language) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    this->field("/language", names.empty() ? "the image has none: use command or argv"
                                           : "must be one of " + names)
        .hint(names.empty() ? "the image has no language: run its programs by command or argv"
                            : "available languages: " + names);
}

PoolChooser::PoolChooser(SpecStore& specs, const pool::WarmPool& warm, pool::ImageRuntime& runtime,
                         const WorkspaceTable& table, OnDemandPools& on_demand,
                         std::string default_pool)
    : specs_(specs),
      warm_(warm),
      runtime_(runtime),
      table_(table),
      on_demand_(on_demand),
      default_pool_(std::move(default_pool)) {}

void PoolChooser::requireDefaultPool(const std::vector<PoolPtr>& pools) const {
    if (default_pool_.empty()) return;
    const bool declared = std::any_of(pools.begin(), pools.end(), [&](const PoolPtr& pool) {
        return !pool->deleting && pool->name == default_pool_;
    });
    if (declared) return;
    std::string names;
    for (const PoolPtr& pool : pools) {
        if (pool->deleting || !pool->on_demand.empty()) continue;
        names += (names.empty() ? "" : ", ") + pool->name;
    }
    throw Error(ErrorCode::NotFound, "the default pool " + default_pool_ + " is not declared")
        .hint(names.empty() ? "no pool is declared: declare one with hearth apply -f"
                            : "name one of the declared pools: " + names +
                                  "; or ask an operator to declare it (hearth apply -f) or to "
                                  "choose another one (hearth serve --default-pool)");
}

bool PoolChooser::speaks(const Pool& pool, const WorkspaceRequest& request,
                         const std::set<std::string>& without) const {
    if (!request.language) return true;
    if (without.contains(pool.name)) return false;
    const auto known = warm_.languages(pool.name);
    return !known || !pool::languageAmong(*request.language, *known).empty();
}

bool PoolChooser::hasImage(const Pool& pool, const WorkspaceRequest& request) const {
    return !request.image || runtime_.sameImage(pool.spec.image, *request.image);
}

std::set<std::string> PoolChooser::languagesOf(const std::vector<PoolPtr>& pools) const {
    std::set<std::string> all;
    for (const PoolPtr& pool : pools) {
        if (const auto known = warm_.languages(pool->name))
            all.insert(known->begin(), known->end());
    }
    return all;
}

PoolPtr PoolChooser::named(const Principal& who, const WorkspaceRequest& request,
                           const std::set<std::string>& without) {
    PoolPtr pool = specs_.find(*request.pool);
    // An on-demand pool is claimed by its image, which must be allowed, not by its name.
    const bool hidden = pool && !pool->on_demand.empty() && !who.atLeast(Role::Operator) &&
                        !table_.holds(who.tenant, pool->name);
    if (!pool || pool->deleting || hidden) throw specs_.noPool(*request.pool);
    if (!hasImage(*pool, request)) {
        throw Error(ErrorCode::InvalidSpec, "pool " + pool->name + " has image " + pool->spec.image)
            .field("/image", "is not the image of the pool");
    }
    if (!speaks(*pool, request, without)) {
        throw NoLanguage("pool " + pool->name + " has no", *request.language, languagesOf({pool}));
    }
    if (request.gpu && !matches(pool->spec.gpu, *request.gpu)) {
        throw Error(ErrorCode::InvalidSpec, "pool " + pool->name + " has " + gpusText(*pool))
            .field("/gpu", "does not match the sandboxes of the pool");
    }
    if (!request.limits.within(pool->spec.limits)) {
        throw tooSmall(pool->name, pool->spec.limits, request.limits);
    }
    return pool;
}

PoolPtr PoolChooser::firstThatFits(const WorkspaceRequest& request,
                                   const std::set<std::string>& without) {
    std::vector<PoolPtr> pools = specs_.all();
    if (!request.image) requireDefaultPool(pools);
    // The default pool first, then the oldest.
    std::stable_partition(pools.begin(), pools.end(),
                          [&](const PoolPtr& pool) { return pool->name == default_pool_; });
    if (!request.gpu) {
        // Devices are kept for claims that ask for them.
        std::stable_partition(pools.begin(), pools.end(), [&](const PoolPtr& pool) {
            return pool->spec.gpu.count == 0 || pool->name == default_pool_;
        });
    }
    std::vector<PoolPtr> imaged;
    std::vector<PoolPtr> small;
    bool offline = false;  // a pool would fit except for its network
    bool gpuless = false;  // or except for its GPUs
    for (PoolPtr& pool : pools) {
        // On-demand pools are chosen elsewhere: the allowed images may have changed.
        if (pool->deleting || !pool->on_demand.empty() || !hasImage(*pool, request)) continue;
        // A pool must offer at least the requested network mode; one that offers more is narrowed.
        if (request.network.value_or(egress::NetworkMode::None) > pool->spec.network) {
            offline = true;
            continue;
        }
        if (request.gpu && !matches(pool->spec.gpu, *request.gpu)) {
            gpuless = true;
            continue;
        }
        if (!speaks(*pool, request, without)) {
            imaged.push_back(pool);
        } else if (!request.limits.within(pool->spec.limits)) {
            small.push_back(pool);
        } else {
            return pool;
        }
    }
    if (!small.empty()) throw allTooSmall(small, request.limits);
    if (!imaged.empty()) throw NoLanguage("no pool has", *request.language, languagesOf(imaged));
    if (offline) {
        throw Error(ErrorCode::InvalidSpec, std::string("no pool offers network ") +
                                                egress::kNetworkModes.of(*request.network))
            .field("/network", "is not offered by any pool")
            .hint("an operator can set it in a pool's template.network");
    }
    if (request.gpu) throw noGpus(pools, gpuless, *request.gpu);
    if (!request.image) {
        throw Error(ErrorCode::InvalidSpec, "no pool is declared")
            .hint("declare one with hearth apply -f");
    }
    return nullptr;
}

Task<OnDemandPools::Found> PoolChooser::choose(const Principal& who,
                                               const WorkspaceRequest& request,
                                               const std::set<std::string>& without) {
    if (request.pool) co_return OnDemandPools::Found{named(who, request, without), {}};
    if (PoolPtr pool = firstThatFits(request, without)) {
        co_return OnDemandPools::Found{std::move(pool), {}};
    }
    Task<OnDemandPools::Found> on_demand =
        on_demand_.poolFor(who.tenant, *request.image, request.patience);
    OnDemandPools::Found found = co_await on_demand;
    if (!speaks(*found.pool, request, without)) {
        throw NoLanguage("image " + *request.image + " has no", *request.language,
                         languagesOf({found.pool}));
    }
    if (!request.limits.within(found.pool->spec.limits)) {
        throw allTooSmall({found.pool}, request.limits);
    }
    co_return found;
}

}  // namespace hearth::controller
