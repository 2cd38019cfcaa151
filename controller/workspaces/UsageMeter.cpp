#include "controller/workspaces/UsageMeter.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/Ids.h"
#include "controller/workspaces/SandboxUse.h"

namespace hearth::controller {
namespace {

/// One look costs the kernel some 50 microseconds a sandbox, a daemon or an agent a millisecond.
constexpr std::size_t kMostLooks = 512;
/// Limits one round of looks: agents that do not answer must not keep others' work waiting.
constexpr auto kLongestLook = std::chrono::seconds(5);
constexpr std::uint64_t kKiB = 1024;
/// An ended workspace is forgotten after this time if its sandbox was gone before its end.
constexpr auto kForgotten = std::chrono::minutes(30);
/// A limit allows processor time for this much longer than has passed: looks are not on time.
constexpr std::uint64_t kCpuRoomMs = 10'000;
constexpr const char* kOtherTenants = "other";

std::uint64_t millis(TimePoint::duration d) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

/// Returns the product; the largest number if it is above that.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

}  // namespace

UsageMeter::UsageMeter(const WorkspaceTable& table, pool::SandboxRuntime& runtime,
                       egress::EgressGateway& gateway, const QuotaLedger& quotas,
                       const History& history)
    : table_(table),
      runtime_(runtime),
      gateway_(gateway),
      quotas_(quotas),
      history_(history),
      book_(history.journal),
      counted_before_(book_.knownUntil()) {}

UsageMeter::Known& UsageMeter::known(const WorkspaceFacts& facts) {
    const auto [place, is_new] = known_.try_emplace(facts.sandbox);
    Known& known = place->second;
    if (!is_new) return known;
    known.tenant = facts.tenant;
    known.pool = facts.pool;
    known.gpus = facts.gpus.size();
    known.milli_cpu = facts.limits.milli_cpu;
    known.memory_bytes = facts.limits.memory_bytes;
    // After a restart, an agent tells the time.
    known.until = std::clamp(facts.created_at, TimePoint(), history_.clock.now());
    known.cpu_until = known.until;
    known.cpu_room_us = product(known.milli_cpu, kCpuRoomMs);
    known.cpu_ns = facts.cpu_before_ns;
    const bool ours = facts.cpu_before_ns.has_value();
    const WallTime counted = std::min(counted_before_.value_or(WallTime()), history_.clock.wall());
    if (!ours && counted > facts.created) {
        // Found after a restart: an earlier server has counted its time up to then.
        known.until += std::chrono::duration_cast<TimePoint::duration>(counted - facts.created);
        known.until = std::min(known.until, history_.clock.now());
    } else {
        add(known, {.claims = 1});
    }
    return known;
}

void UsageMeter::add(const Known& known, const UsageSums& sums) {
    book_.add(known.tenant, known.pool, sums);
}

std::string UsageMeter::classOf(const std::string& tenant) const {
    return quotas_.declared(tenant) ? tenant : kOtherTenants;
}

void UsageMeter::write(WallTime now) {
    for (const auto& [of, sums] : book_.write(now)) {
        history_.metrics.usage().add(
            {classOf(of.first), of.second},
            {.claims = static_cast<double>(sums.claims),
             .sandbox_seconds = static_cast<double>(sums.sandbox_ms) / 1e3,
             .cpu_seconds = static_cast<double>(sums.cpu_us) / 1e6,
             .gpu_seconds = static_cast<double>(sums.gpu_ms) / 1e3,
             .memory_byte_seconds = static_cast<double>(sums.memory_kib_secs) * kKiB,
             .egress_bytes = static_cast<double>(sums.egress_bytes)});
    }
}

void UsageMeter::advance(Known& known, std::optional<std::uint64_t> egress_bytes) {
    const TimePoint now = history_.clock.now();
    const std::uint64_t passed = known.ended ? 0 : millis(now - known.until);
    UsageSums sums{.sandbox_ms = passed,
                   .gpu_ms = passed * known.gpus,
                   .memory_kib_secs = product(known.memory_kib, passed) / 1000};
    known.unseen_ms += passed;
    known.until += std::chrono::milliseconds(passed);
    if (egress_bytes && *egress_bytes > known.egress_bytes) {
        sums.egress_bytes = *egress_bytes - known.egress_bytes;
        known.egress_bytes = *egress_bytes;
    }
    add(known, sums);
}

void UsageMeter::countCpu(Known& known, std::uint64_t cpu_ns) {
    // The rest of earlier looks lasts for the room only: idle time is not saved up.
    const TimePoint now = history_.clock.now();
    const std::uint64_t kept = std::min(known.cpu_room_us, product(known.milli_cpu, kCpuRoomMs));
    const std::uint64_t earned = product(known.milli_cpu, millis(now - known.cpu_until));
    known.cpu_room_us = earned > UINT64_MAX - kept ? UINT64_MAX : kept + earned;
    known.cpu_until = std::max(known.cpu_until, now);
    // For a sandbox found after a restart, its earlier use is not known.
    const std::uint64_t before = known.cpu_ns.value_or(cpu_ns);
    known.cpu_ns = std::max(before, cpu_ns);
    if (cpu_ns <= before) return;
    std::uint64_t grown_us = (cpu_ns - before) / 1000;
    if (known.milli_cpu > 0 && grown_us > known.cpu_room_us) {
        // The rest is counted when the limit allows it, if later looks still report it.
        grown_us = known.cpu_room_us;
        known.cpu_ns = before + grown_us * 1000;
    }
    known.cpu_room_us -= std::min(grown_us, known.cpu_room_us);
    add(known, {.cpu_us = grown_us});
}

void UsageMeter::countUse(Known& known, const Answer& answer) {
    const pool::SandboxUsage& usage = *answer.usage;
    countCpu(known, usage.cpu_ns);
    // Without a count of its own for each look, the peak since the sandbox's start shows only the
    // first time that so much was held.
    const std::uint64_t highest = usage.memory_peak_bytes / kKiB;
    const bool grew = highest > std::exchange(known.memory_peak_kib, highest);
    const std::uint64_t peak =
        answer.memory_peak ? *answer.memory_peak / kKiB : (grew ? highest : 0);
    countMemory(known, usage.memory_bytes / kKiB, peak);
}

void UsageMeter::countMemory(Known& known, std::uint64_t present_kib, std::uint64_t peak_kib) {
    const std::uint64_t limit = known.memory_bytes > 0 ? known.memory_bytes / kKiB : UINT64_MAX;
    const std::uint64_t most = std::min(std::max(present_kib, peak_kib), limit);
    const std::uint64_t before = std::exchange(known.memory_kib, std::min(present_kib, limit));
    const std::uint64_t unseen = std::exchange(known.unseen_ms, 0);
    if (most > before) add(known, {.memory_kib_secs = product(most - before, unseen) / 1000});
}

void UsageMeter::countUnseen(Known& known) {
    // Without any processor time it has never been seen: its agent cannot report its use.
    if (!known.ended || known.cpu_ns.value_or(0) == 0) return;
    // On this machine, the control group of a silent sandbox still tells its use.
    const bool hidden = runtime_.inCluster() && known.silent_since;
    const TimePoint end = hidden ? std::min(known.until, *known.silent_since) : known.until;
    add(known, {.cpu_us = product(known.milli_cpu, millis(end - known.cpu_until))});
    known.cpu_until = std::max(known.cpu_until, end);
    if (!hidden) countMemory(known, known.memory_kib, known.memory_bytes / kKiB);
}

UsageMeter::Answer UsageMeter::ask(const pool::SandboxId& sandbox,
                                   const std::shared_ptr<agent::AgentClient>& agent) {
    try {
        return {.usage = sandboxUse(runtime_, sandbox, agent),
                .memory_peak = runtime_.takeMemoryPeak(sandbox)};
    } catch (const std::exception& e) {
        history_.log.debug("usage.unknown", {{"sandbox", sandbox}, {"error", e.what()}});
        return {.failed = true};
    }
}

std::uint64_t UsageMeter::egressOf(const WorkspaceFacts& facts) const {
    if (facts.network == egress::NetworkMode::None) return 0;
    const egress::EgressReport report = gateway_.report(facts.sandbox);
    return report.sent + report.received;
}

std::chrono::milliseconds UsageMeter::pause() {
    std::uint64_t drawn = 0;
    randomBytes(&drawn, sizeof drawn);
    const auto span = static_cast<std::uint64_t>((kLongestPause - kShortestPause).count()) + 1;
    return kShortestPause + std::chrono::milliseconds(drawn % span);
}

void UsageMeter::look() {
    const WallTime begun = history_.clock.wall();
    const std::vector<std::shared_ptr<Workspace>> all = table_.all();  // sorted by id
    std::map<std::string, std::size_t> by_class;
    for (const std::shared_ptr<Workspace>& workspace : all) {
        ++by_class[classOf(workspace->facts().tenant)];
    }
    std::size_t first = 0;
    {
        const MutexLock lock(mutex_);
        const auto is_forgettable = [this](const auto& entry)
                                        HEARTH_REQUIRES(mutex_) { return forgettable(entry); };
        std::erase_if(known_, is_forgettable);
        first = static_cast<std::size_t>(
            std::ranges::lower_bound(all, next_, {},
                                     [](const auto& each) { return each->facts().id; }) -
            all.begin());
    }
    history_.metrics.usage().workspaces(by_class);
    // First counts the time of all, which costs no call; then the usage of some of them.
    for (const std::shared_ptr<Workspace>& workspace : all) {
        const MutexLock lock(mutex_);
        if (Known* it = open(workspace->facts())) advance(*it, std::nullopt);
    }
    const std::size_t most = std::min(all.size(), kMostLooks);
    const TimePoint until = history_.clock.now() + kLongestLook;
    std::size_t looks = 0;
    for (; looks < most && history_.clock.now() < until; ++looks) {
        const Workspace& workspace = *all[(first + looks) % all.size()];
        const WorkspaceFacts& facts = workspace.facts();
        const bool silent = workspace.silentSince().has_value();
        const Answer answer = ask(facts.sandbox, silent ? nullptr : workspace.agent());
        const std::uint64_t egress = egressOf(facts);
        const MutexLock lock(mutex_);
        Known* it = open(facts);
        if (it == nullptr) continue;
        advance(*it, egress);
        if (answer.usage) countUse(*it, answer);
    }
    {
        const MutexLock lock(mutex_);
        next_ = all.empty() ? "" : all[(first + looks) % all.size()]->facts().id;
    }
    write(begun);
}

UsageMeter::Known* UsageMeter::open(const WorkspaceFacts& facts) {
    // A workspace that ended meanwhile has been counted, and may already be forgotten.
    if (!known_.contains(facts.sandbox) && table_.find(facts.id) == nullptr) return nullptr;
    Known& it = known(facts);
    return it.ended ? nullptr : &it;
}

void UsageMeter::ended(const Workspace& workspace) {
    const std::uint64_t egress = egressOf(workspace.facts());
    const MutexLock lock(mutex_);
    Known& it = known(workspace.facts());
    advance(it, egress);
    it.silent_since = workspace.silentSince();
    it.ended = true;
}

void UsageMeter::settle(const pool::SandboxId& sandbox,
                        const std::shared_ptr<agent::AgentClient>& agent) {
    {
        const MutexLock lock(mutex_);
        if (!known_.contains(sandbox)) return;
    }
    const Answer answer = ask(sandbox, agent);
    const MutexLock lock(mutex_);
    const auto found = known_.find(sandbox);
    if (found == known_.end()) return;
    if (answer.usage) {
        countUse(found->second, answer);
    } else if (!answer.failed) {
        countUnseen(found->second);
    }
    found->second.settled = true;
    if (forgettable(*found)) known_.erase(found);
}

bool UsageMeter::forgettable(const std::pair<const pool::SandboxId, Known>& entry) const {
    const Known& it = entry.second;
    const bool gone = it.settled || history_.clock.now() - it.until > kForgotten;
    // If it is still in the table, it would be counted as a new one.
    return it.ended && gone && table_.bySandbox(entry.first) == nullptr;
}

}  // namespace hearth::controller
