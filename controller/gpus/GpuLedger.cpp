#include "controller/gpus/GpuLedger.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/CrashPoint.h"
#include "controller/gpus/GpuChoice.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::controller {
namespace {

/// The pause before a retry: a driver that did not answer may answer then.
constexpr auto kScrubAgain = std::chrono::seconds(30);

}  // namespace

std::string gpusLabel(const std::vector<std::string>& uuids) {
    std::string text;
    for (const std::string& uuid : uuids) text += (text.empty() ? "" : ",") + uuid;
    return text;
}

std::vector<std::string> gpusOf(const std::map<std::string, std::string>& labels) {
    std::vector<std::string> uuids;
    const auto found = labels.find(kGpusLabel);
    if (found == labels.end()) return uuids;
    const std::string& text = found->second;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        std::string uuid = text.substr(at, end - at);
        if (pool::isGpuUuid(uuid) || isClusterResource(uuid)) uuids.push_back(std::move(uuid));
        at = end + 1;
    }
    return uuids;
}

GpuLedger::GpuLedger(pool::GpuHost& host, WorkQueue& work, const History& history,
                     GpuPlacement placement)
    : host_(host),
      work_(work),
      history_(history),
      placement_(placement),
      records_(history.journal, history.log, host.tenure()) {
    load();
}

void GpuLedger::load() {
    const GpuRecords::Contents contents = records_.load();
    const MutexLock lock(mutex_);
    for (const GpuRecords::Device& known : contents.devices) {
        Device& device = devices_[known.uuid];
        device.seen.uuid = known.uuid;
        device.clean = known.clean;
        device.condemned = known.condemned;
    }
    for (const GpuRecords::Lease& lease : contents.leases) {
        Device& device = devices_[lease.uuid];
        device.seen.uuid = lease.uuid;
        device.seen.parent = lease.parent;
        device.clean = false;
        device.leases[lease.sandbox] = {lease.pool, lease.shared, true};
    }
}

GpuState GpuLedger::stateOf(const Device& device) {
    if (!device.present) return GpuState::Gone;
    if (device.seen.split) return GpuState::Split;
    if (!device.condemned.empty()) return GpuState::Condemned;
    if (!device.leases.empty()) return GpuState::Leased;
    if (!device.seen.fault.empty()) return GpuState::Faulty;
    return device.clean && !device.scrubbing ? GpuState::Free : GpuState::Scrubbing;
}

bool GpuLedger::takes(const Device& device, const GpuSpec& spec) {
    if (device.leases.empty()) return stateOf(device) == GpuState::Free;
    return spec.sharing == GpuSharing::Shared && device.present && device.seen.fault.empty() &&
           device.condemned.empty() && device.leases.size() < spec.shared_by &&
           std::all_of(device.leases.begin(), device.leases.end(),
                       [](const auto& entry) { return entry.second.shared; });
}

bool GpuLedger::heldThroughAnother(const Device& device) const {
    return std::any_of(devices_.begin(), devices_.end(), [&](const auto& entry) {
        const Device& other = entry.second;
        if (other.leases.empty() || other.seen.uuid == device.seen.uuid) return false;
        const std::string& parent = device.seen.parent;
        return other.seen.parent == device.seen.uuid || other.seen.uuid == parent ||
               (!parent.empty() && other.seen.parent == parent && !other.present);
    });
}

GpuLedger::Taken GpuLedger::take(const pool::SandboxId& sandbox, const std::string& pool,
                                 const GpuSpec& spec, std::size_t kept) {
    if (placement_ == GpuPlacement::Cluster) {
        return {std::vector<std::string>(spec.count, clusterResourceOf(spec)), {}};
    }
    const MutexLock lock(mutex_);
    // The preferred product first; among equal ones the fullest shared one, then the smallest.
    using Place = std::tuple<std::size_t, std::size_t, std::uint64_t, std::string>;
    std::vector<Place> free;
    std::map<GpuState, std::size_t> others;
    std::size_t fitting = 0;
    for (const auto& [uuid, device] : devices_) {
        const std::optional<std::size_t> rank = rankOf(device.seen, spec);
        if (!rank) continue;
        ++fitting;
        if (takes(device, spec) && !heldThroughAnother(device)) {
            free.emplace_back(*rank, spec.shared_by - device.leases.size(),
                              device.seen.memory_bytes, uuid);
        } else {
            ++others[stateOf(device)];
        }
    }
    if (free.size() < spec.count + kept) {
        std::string why = "needs " + std::to_string(spec.count) + " of " + std::to_string(fitting) +
                          " fitting GPUs, and " + std::to_string(free.size()) + " are free";
        if (free.size() >= spec.count) why += ", which claims of other pools wait for";
        for (const auto& [state, count] : others) {
            why += "; " + std::to_string(count) + " " + kGpuStates.of(state);
        }
        return {{}, std::move(why)};
    }
    std::sort(free.begin(), free.end());
    std::vector<std::string> uuids;
    for (std::size_t i = 0; i < spec.count; ++i) {
        const std::string& uuid = std::get<3>(free[i]);
        Device& device = devices_.at(uuid);
        device.leases[sandbox] = {pool, spec.sharing == GpuSharing::Shared, false};
        uuids.push_back(uuid);
    }
    publish();
    return {std::move(uuids), {}};
}

void GpuLedger::keep(const pool::SandboxId& sandbox, const std::shared_ptr<void>& until_clean) {
    const MutexLock lock(mutex_);
    for (auto& [uuid, device] : devices_) {
        const auto found = device.leases.find(sandbox);
        if (found != device.leases.end()) found->second.until_clean = until_clean;
    }
}

void GpuLedger::store(const pool::SandboxId& sandbox) {
    std::vector<GpuRecords::Lease> rows;
    {
        const MutexLock lock(mutex_);
        for (const auto& [uuid, device] : devices_) {
            const auto found = device.leases.find(sandbox);
            if (found != device.leases.end()) {
                rows.push_back(
                    {uuid, sandbox, found->second.pool, found->second.shared, device.seen.parent});
            }
        }
    }
    crashPoint("gpu.lease.before");
    records_.store(rows);
    crashPoint("gpu.lease.after");
    const MutexLock lock(mutex_);
    for (const GpuRecords::Lease& row : rows) {
        Device& device = devices_.at(row.uuid);
        device.clean = false;
        const auto found = device.leases.find(sandbox);
        if (found != device.leases.end()) found->second.stored = true;
    }
}

void GpuLedger::drop(const pool::SandboxId& sandbox) {
    std::vector<std::string> left;
    bool stored = false;
    {
        const MutexLock lock(mutex_);
        for (auto& [uuid, device] : devices_) {
            const auto found = device.leases.find(sandbox);
            if (found == device.leases.end()) continue;
            stored = stored || found->second.stored;
            if (!found->second.shared) device.until_clean = std::move(found->second.until_clean);
            device.leases.erase(found);
            if (device.leases.empty()) left.push_back(uuid);
        }
        if (!left.empty()) publish();
    }
    if (stored) records_.erase(sandbox);
    for (const std::string& uuid : left) want(uuid);
}

void GpuLedger::want(const std::string& uuid) {
    work_.add({WorkKind::Gpu, uuid});
}

ReconcileResult GpuLedger::scrub(const std::string& uuid) {
    {
        const MutexLock lock(mutex_);
        const auto found = devices_.find(uuid);
        if (found == devices_.end()) return ReconcileResult::settled();
        Device& device = found->second;
        if (device.clean || device.scrubbing || stateOf(device) != GpuState::Scrubbing ||
            heldThroughAnother(device)) {  // a later look adds it again
            return ReconcileResult::settled();
        }
        device.scrubbing = true;
        publish();
    }
    const TimePoint since = history_.clock.now();
    crashPoint("gpu.scrub.before");
    pool::GpuScrub result = host_.scrub(uuid);
    if (!result.clean && result.unknown) {  // this proves nothing against the device
        history_.log.warn("gpu.scrub_unknown", {{"gpu", uuid}, {"why", result.why}});
        const MutexLock lock(mutex_);
        devices_.at(uuid).scrubbing = false;
        return ReconcileResult::after(kScrubAgain);
    }
    const double seconds = toSeconds(history_.clock.now() - since);
    history_.metrics.gpus().scrub(result.clean, seconds);
    if (result.clean) {
        try {
            records_.storeClean(uuid);
        } catch (...) {
            const MutexLock lock(mutex_);
            devices_.at(uuid).scrubbing = false;
            throw;  // scrubbed again: without the disk's record it is not clean
        }
        crashPoint("gpu.scrub.after");
        history_.log.info("gpu.scrubbed",
                          {{"gpu", uuid}, {"bytes", result.bytes}, {"seconds", seconds}});
    } else {
        condemn(uuid, result.why.empty() ? "its memory could not be overwritten" : result.why);
    }
    bool present = false;
    {
        const MutexLock lock(mutex_);
        Device& device = devices_.at(uuid);
        device.scrubbing = false;
        device.clean = result.clean;
        device.until_clean.reset();
        present = device.present;
        publish();
    }
    if (!present) loseSight(uuid);  // its state from now on is not known
    return ReconcileResult::settled();
}

void GpuLedger::condemn(const std::string& uuid, const std::string& why) {
    {
        const MutexLock lock(mutex_);
        devices_.at(uuid).condemned = why;
    }
    history_.log.error("gpu.condemned", {{"gpu", uuid}, {"why", why}});
    history_.events.publish({.type = "gpu.condemned",
                             .resource = uuid,
                             .reason = "ScrubFailed",
                             .message = "it is no longer given out: " + why});
    records_.storeCondemned(uuid, why);
}

bool GpuLedger::retry(const std::string& uuid) {
    {
        const MutexLock lock(mutex_);
        const auto found = devices_.find(uuid);
        if (found == devices_.end() || stateOf(found->second) != GpuState::Condemned) return false;
    }
    records_.clearCondemned(uuid);
    {
        const MutexLock lock(mutex_);
        devices_.at(uuid).condemned.clear();
        publish();
    }
    want(uuid);
    return true;
}

bool GpuLedger::look() {
    const std::vector<pool::GpuDevice> seen = host_.devices();
    std::vector<std::string> dirty;
    std::vector<std::string> split;
    std::vector<std::string> gone;
    struct News {
        std::string uuid;
        std::string type;
        std::string reason;
        std::string message;
    };
    std::vector<News> news;
    {
        const MutexLock lock(mutex_);
        std::set<std::string> present;
        for (const pool::GpuDevice& one : seen) {
            present.insert(one.uuid);
            Device& device = devices_[one.uuid];
            const bool back = !device.present;
            if (device.seen.fault != one.fault && !(back && one.fault.empty())) {
                news.push_back(
                    {one.uuid, one.fault.empty() ? "gpu.recovered" : "gpu.faulty",
                     one.fault.empty() ? "Healthy" : "Fault",
                     one.fault.empty() ? "the driver reports no fault any more" : one.fault});
            } else if (back && looked_) {
                news.push_back({one.uuid, "gpu.found", "Found", one.product});
            }
            device.seen = one;
            device.present = true;
            if (!one.fault.empty() || one.split) device.until_clean.reset();
            // Its instances are in use: their leftovers are found when it is whole again.
            if (one.split && std::exchange(device.clean, false)) split.push_back(one.uuid);
            if (stateOf(device) == GpuState::Scrubbing && !device.scrubbing) {
                dirty.push_back(one.uuid);
            }
        }
        for (auto& [uuid, device] : devices_) {
            if (present.contains(uuid)) continue;
            if (device.present) {
                news.push_back({uuid, "gpu.gone", "Gone", "the driver does not show it any more"});
            }
            // A driver that shows no device at all may simply not have answered yet.
            if (device.present || !seen.empty()) gone.push_back(uuid);
            device.present = false;
        }
        looked_ = true;
        publish();
    }
    for (const std::string& uuid : dirty) want(uuid);
    for (const std::string& uuid : split) records_.distrust(uuid);
    for (const std::string& uuid : gone) loseSight(uuid);
    records_.retryErasures();
    for (const News& one : news) {
        history_.log.info(one.type.c_str(), {{"gpu", one.uuid}, {"message", one.message}});
        history_.events.publish(
            {.type = one.type, .resource = one.uuid, .reason = one.reason, .message = one.message});
    }
    return !news.empty();
}

void GpuLedger::loseSight(const std::string& uuid) {
    {
        const MutexLock lock(mutex_);
        const auto found = devices_.find(uuid);
        if (found == devices_.end() || found->second.present) return;
        Device& device = found->second;
        // Any process that resets or moves it may also use it.
        const bool was_clean = std::exchange(device.clean, false);
        device.until_clean.reset();
        const bool held = !device.leases.empty() || !device.condemned.empty() || device.scrubbing;
        if (!held) devices_.erase(found);
        if (held && !was_clean) return;
    }
    records_.distrust(uuid);
}

void GpuLedger::recover(std::vector<pool::SandboxInfo>& sandboxes) {
    if (placement_ == GpuPlacement::Cluster) return;
    std::set<pool::SandboxId> gone;
    {
        const MutexLock lock(mutex_);
        std::map<pool::SandboxId, std::vector<std::string>> known;
        for (const auto& [uuid, device] : devices_) {
            for (const auto& [sandbox, lease] : device.leases) known[sandbox].push_back(uuid);
        }
        for (pool::SandboxInfo& info : sandboxes) {
            const auto leased = known.extract(info.id);
            if (!leased.empty()) {
                info.labels[kGpusLabel] = gpusLabel(leased.mapped());
                continue;
            }
            const auto pool = info.labels.find("pool");
            for (const std::string& uuid : gpusOf(info.labels)) {
                Device& device = devices_[uuid];
                device.seen.uuid = uuid;
                device.clean = false;
                // Labels do not say whether the pool shares: this sandbox holds the device alone.
                device.leases[info.id] = {pool == info.labels.end() ? "" : pool->second, false,
                                          true};
            }
        }
        for (const auto& [sandbox, uuids] : known) gone.insert(sandbox);
    }
    for (const pool::SandboxId& sandbox : gone) drop(sandbox);
}

std::size_t GpuLedger::coming(const GpuSpec& spec) const {
    const MutexLock lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(devices_.begin(), devices_.end(), [&](const auto& entry) {
            return stateOf(entry.second) == GpuState::Scrubbing &&
                   rankOf(entry.second.seen, spec).has_value();
        }));
}

std::size_t GpuLedger::fitting(const GpuSpec& spec) const {
    if (placement_ == GpuPlacement::Cluster) return SIZE_MAX;  // its scheduler decides
    const MutexLock lock(mutex_);
    const auto devices = static_cast<std::size_t>(
        std::count_if(devices_.begin(), devices_.end(), [&](const auto& entry) {
            return entry.second.present && rankOf(entry.second.seen, spec).has_value();
        }));
    return spec.sharing == GpuSharing::Shared ? devices * spec.shared_by : devices;
}

std::size_t GpuLedger::attainable(const GpuSpec& spec,
                                  const std::set<pool::SandboxId>& claimed) const {
    if (placement_ == GpuPlacement::Cluster) return SIZE_MAX;
    const std::size_t of_each = spec.sharing == GpuSharing::Shared ? spec.shared_by : 1;
    std::size_t places = 0;
    const MutexLock lock(mutex_);
    for (const auto& [uuid, device] : devices_) {
        const GpuState state = stateOf(device);
        const bool healthy =
            device.seen.fault.empty() &&
            (state == GpuState::Free || state == GpuState::Scrubbing || state == GpuState::Leased);
        if (!healthy || !rankOf(device.seen, spec) || heldThroughAnother(device)) continue;
        std::size_t taken = 0;
        for (const auto& [sandbox, lease] : device.leases) {
            if (!claimed.contains(sandbox)) continue;
            taken += lease.shared ? 1 : of_each;
        }
        places += of_each - std::min(taken, of_each);
    }
    return places;
}

bool GpuLedger::overlap(const GpuSpec& one, const GpuSpec& other) const {
    const MutexLock lock(mutex_);
    return std::any_of(devices_.begin(), devices_.end(), [&](const auto& entry) {
        return rankOf(entry.second.seen, one) && rankOf(entry.second.seen, other);
    });
}

bool GpuLedger::fits(const pool::SandboxId& sandbox, const GpuSpec& spec) const {
    const MutexLock lock(mutex_);
    return std::any_of(devices_.begin(), devices_.end(), [&](const auto& entry) {
        return entry.second.leases.contains(sandbox) && rankOf(entry.second.seen, spec);
    });
}

std::map<pool::SandboxId, std::vector<std::string>> GpuLedger::leases() const {
    std::map<pool::SandboxId, std::vector<std::string>> all;
    const MutexLock lock(mutex_);
    for (const auto& [uuid, device] : devices_) {
        for (const auto& [sandbox, lease] : device.leases) {
            if (lease.stored) all[sandbox].push_back(uuid);
        }
    }
    return all;
}

std::set<pool::SandboxId> GpuLedger::onFaulty() const {
    std::set<pool::SandboxId> all;
    const MutexLock lock(mutex_);
    for (const auto& [uuid, device] : devices_) {
        if (device.present && device.seen.fault.empty()) continue;
        for (const auto& [sandbox, lease] : device.leases) all.insert(sandbox);
    }
    return all;
}

std::vector<GpuView> GpuLedger::devices() const {
    std::vector<GpuView> all;
    const MutexLock lock(mutex_);
    for (const auto& [uuid, device] : devices_) {
        GpuView view{uuid,
                     device.seen.product,
                     device.seen.memory_bytes,
                     device.seen.parent,
                     device.seen.profile,
                     stateOf(device),
                     device.condemned.empty() ? device.seen.fault : device.condemned,
                     {}};
        for (const auto& [sandbox, lease] : device.leases) {
            view.holders.push_back({sandbox, lease.pool});
        }
        all.push_back(std::move(view));
    }
    return all;
}

std::optional<FieldError> GpuLedger::refusal(const GpuSpec& spec) const {
    if (placement_ == GpuPlacement::Cluster) return refusalInCluster(spec);
    return refusalOf(spec, host_.devices(), host_.absence());
}

bool GpuLedger::any() const {
    const MutexLock lock(mutex_);
    return !devices_.empty();
}

void GpuLedger::publish() const {
    std::map<GpuState, std::size_t> counts;
    for (const auto& [uuid, device] : devices_) ++counts[stateOf(device)];
    for (const char* text : kGpuStates.texts) {
        const GpuState state = *kGpuStates.find(text);
        history_.metrics.gpus().devices(text, static_cast<double>(counts[state]));
    }
}

}  // namespace hearth::controller
