#include "api/serve/PoolSetup.h"

#include <algorithm>
#include <utility>

#include "api/serve/runtimes/Runtimes.h"
#include "base/Error.h"

namespace hearth::program {

PoolSetup::PoolSetup(const cli::ServeConfig& config, controller::ControlPlane& plane,
                     StartupGate& gate, const Terminal& terminal, std::stop_token ended)
    : config_(config),
      plane_(plane),
      runtime_(plane.foundation.runtime),
      log_(plane.foundation.log),
      clock_(plane.foundation.clock),
      gate_(gate),
      terminal_(terminal),
      ended_(std::move(ended)) {}

void PoolSetup::declareFiles(const PrivilegedSetup& setup) {
    for (const controller::PoolPtr& pool : plane_.specs.all()) {
        plane_.foundation.metrics.bornPool(pool->name);
    }
    for (const controller::Pool& pool : setup.declared) declare(pool);
    for (const controller::Pool& pool : setup.declared_once) {
        if (!plane_.specs.find(pool.name)) declare(pool);
    }
}

void PoolSetup::followObjects() {
    if (!*config_.custom_resources) return adoptPoolsOfObjects();
    gate_.say("reading the pools of the cluster");
    objects_ =
        std::make_unique<kubernetes::PoolObjects>(clusterOf(config_), plane_.pools, clock_, log_);
    objects_->begin(ended_);
}

void PoolSetup::adoptPoolsOfObjects() {
    for (const controller::PoolPtr& pool : plane_.specs.all()) {
        if (pool->object.empty() || pool->deleting) continue;
        controller::Pool ours = *pool;
        ours.object.clear();
        declare(ours);
    }
}

void PoolSetup::stopObjects() {
    if (objects_) objects_->stop();
}

void PoolSetup::declare(const controller::Pool& pool) {
    try {
        const controller::PoolPtr before = plane_.specs.find(pool.name);
        plane_.pools.declare(pool);
        const controller::PoolPtr after = plane_.specs.find(pool.name);
        if (!before || !after || before->generation == after->generation) return;
        log_.warn("pool.replaced",
                  {{"pool", pool.name},
                   {"by", config_.pools.origin},
                   {"hint",
                    "changes that were applied to it are undone: files of --pools win at each "
                    "start; --pools-once declares only pools that do not exist yet"}});
    } catch (const Error& e) {
        if (e.code() != ErrorCode::DiskFull && e.code() != ErrorCode::Unavailable) throw;
        log_.error("pool.not_declared",
                   {{"pool", pool.name},
                    {"error", e.what()},
                    {"hint",
                     "its stored manifest stays in force; free disk space, then start the "
                     "server again or run: hearth apply -f FILE"}});
    }
}

void PoolSetup::prepareImages() {
    for (const controller::PoolPtr& pool : plane_.specs.all()) {
        if (!pool->refused.empty() || !pool->on_demand.empty()) continue;
        if (ended_.stop_requested()) return;
        prepareImage(*pool);
    }
}

void PoolSetup::prepareImage(const controller::Pool& pool) {
    const std::string& image = pool.spec.image;
    const TimePoint begin = clock_.now();
    log_.info("image.preparing", {{"pool", pool.name}, {"image", image}});
    try {
        if (!runtime_.readyImage(image)) {
            gate_.say("unpacking image " + image);
            terminal_.say("Unpacking image " + image +
                          ", once; a large one takes about half a minute.    Stop: Ctrl-C\n");
        }
        runtime_.resolveImage(image);
        log_.info("image.ready", {{"image", image}, {"seconds", toSeconds(clock_.now() - begin)}});
    } catch (const std::exception& e) {
        if (ended_.stop_requested()) return;
        log_.warn("image.not_ready", {{"image", image}, {"error", e.what()}});
    }
}

void PoolSetup::warnOfMissingDefault() const {
    const std::string name = missingDefault();
    if (name.empty()) return;
    log_.warn("pool.default_missing",
              {{"pool", name},
               {"hint",
                "claims that name no pool are refused until it is declared: hearth "
                "apply -f, or name another with --default-pool"}});
}

std::string PoolSetup::missingDefault() const {
    const std::string& name = *config_.default_pool;
    if (name.empty()) return "";
    const controller::PoolPtr pool = plane_.specs.find(name);
    return pool && !pool->deleting ? "" : name;
}

bool PoolSetup::anyDeclared() const {
    const std::vector<controller::PoolPtr> pools = plane_.specs.all();
    return std::any_of(pools.begin(), pools.end(), [](const controller::PoolPtr& pool) {
        return !pool->deleting && pool->on_demand.empty();
    });
}

}  // namespace hearth::program
