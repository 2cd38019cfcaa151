#include "pool/runtime/kubernetes/lease/LeaderLease.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::pool::kubernetes {
namespace {

constexpr const char* kEpochNote = "hearth.dev/epoch";
constexpr const char* kAddressNote = "hearth.dev/address";
constexpr auto kCall = std::chrono::seconds(4);

KubeResource leases(const std::string& ns) {
    return {.group = "coordination.k8s.io", .version = "v1", .plural = "leases", .ns = ns};
}

std::string note(const Json& record, const char* name) {
    const Json& notes = valueAt(record, "/metadata/annotations");
    const auto found = notes.is_object() ? notes.find(name) : notes.end();
    return notes.is_object() && found != notes.end() && found->is_string()
               ? found->get<std::string>()
               : "";
}

std::uint64_t epochOf(const Json& record) {
    const std::string text = note(record, kEpochNote);
    const bool digits = !text.empty() && text.size() < 19 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoull(text) : 0;
}

std::string holderOf(const Json& record) {
    return valueText(record, "/spec/holderIdentity");
}

}  // namespace

std::string microTime(WallTime time) {
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
    const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    std::string fraction = std::to_string(micros % 1'000'000);
    fraction.insert(0, 6 - fraction.size(), '0');
    return std::string(text, size) + "." + fraction + "Z";
}

LeaderLease::LeaderLease(ClusterAccess& access, LeaseOptions options, const Clock& clock,
                         metrics::Log& log)
    : options_(std::move(options)), clock_(clock), log_(log), client_(access, 1) {}

LeaderLease::~LeaderLease() {
    stopped_ = true;
}

LeaderLease::Standing LeaderLease::step() {
    if (standing_ == Standing::Deposed) return standing_;
    tellIfChanged();  // the calls below may take seconds
    standing_ = standing_ == Standing::Leader ? renew() : follow();
    tellIfChanged();
    return standing_;
}

void LeaderLease::tellIfChanged() {
    const bool now = fresh();
    if (std::exchange(was_fresh_, now) != now) subscribers_.notify();
}

std::shared_ptr<void> LeaderLease::subscribe(std::function<void()> changed) {
    return subscribers_.add(std::move(changed));
}

LeaderLease::Standing LeaderLease::follow() {
    const KubeResult<Json> seen =
        client_.get(leases(options_.ns), options_.name, {.timeout = kCall, .stop = &stopped_});
    if (seen.failed(KubeErrorKind::NotFound)) return take(Json());
    if (!seen) {
        const std::string why = seen.error().text();
        if (why != trouble_) log_.warn("leader.unknown", {{"lease", options_.name}, {"why", why}});
        trouble_ = why;
        return Standing::Follower;
    }
    trouble_.clear();
    observe(seen.value());
    expires_ = expiry(seen.value());
    return clock_.now() >= expires_ ? take(seen.value()) : Standing::Follower;
}

void LeaderLease::observe(const Json& record) {
    std::string version = valueText(record, "/metadata/resourceVersion");
    if (version != version_) {
        version_ = std::move(version);
        observed_ = clock_.now();
    }
    const MutexLock lock(mutex_);
    holder_ = {holderOf(record), note(record, kAddressNote), epochOf(record)};
}

TimePoint LeaderLease::expiry(const Json& record) const {
    if (holderOf(record).empty()) return {};
    const Json& told = valueAt(record, "/spec/leaseDurationSeconds");
    const std::chrono::seconds duration =
        told.is_number_integer()
            ? std::chrono::seconds(std::clamp<std::int64_t>(told.get<std::int64_t>(), 1, 3'600))
            : options_.duration;
    return observed_ + duration;
}

std::chrono::milliseconds LeaderLease::pause() const {
    TimePoint due = expires_;
    if (standing_ == Standing::Leader) {
        const MutexLock lock(mutex_);
        due = renewed_.value_or(TimePoint{}) + options_.fresh_for;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - clock_.now());
    return left.count() > 0 ? std::min(options_.every, left) : options_.every;
}

Json LeaderLease::claimed(const Json& before) const {
    Json record = before;
    if (!record.is_object()) {
        record = {{"apiVersion", "coordination.k8s.io/v1"},
                  {"kind", "Lease"},
                  {"metadata",
                   {{"name", options_.name},
                    {"namespace", options_.ns},
                    {"labels", {{"app.kubernetes.io/managed-by", "hearth"}}}}},
                  {"spec", {{"leaseTransitions", 0}}}};
    }
    // Milliseconds since 1970 exceed every earlier number, even if the Lease was deleted.
    const auto now = static_cast<std::uint64_t>(toUnixMillis(clock_.wall()));
    const Json& transitions = valueAt(record, "/spec/leaseTransitions");
    const std::int64_t past = transitions.is_number_integer() ? transitions.get<std::int64_t>() : 0;
    record["metadata"]["annotations"][kEpochNote] =
        std::to_string(std::max(epochOf(record) + 1, now));
    record["metadata"]["annotations"][kAddressNote] = options_.address;
    record["spec"]["holderIdentity"] = options_.identity;
    record["spec"]["leaseDurationSeconds"] = options_.duration.count();
    record["spec"]["acquireTime"] = microTime(clock_.wall());
    record["spec"]["leaseTransitions"] = before.is_object() ? past + 1 : past;
    return renewed(std::move(record));
}

Json LeaderLease::renewed(Json record) const {
    record["spec"]["renewTime"] = microTime(clock_.wall());
    return record;
}

LeaderLease::Standing LeaderLease::take(const Json& before) {
    const TimePoint asked = clock_.now();
    const CallLimits limits{.timeout = kCall, .stop = &stopped_};
    Json wanted = claimed(before);
    if (const auto owner = parseOwner(options_.owner, options_.ns)) {
        const KubeResult<Json> found = ownerReference(client_, *owner);
        if (found) wanted["metadata"]["ownerReferences"] = Json::array({found.value()});
    }
    KubeResult<Json> got = before.is_object() ? client_.replace(leases(options_.ns), wanted, limits)
                                              : client_.create(leases(options_.ns), wanted, limits);
    if (got) return lead(std::move(got).value(), asked);
    if (!got.failed(KubeErrorKind::Conflict) && !got.failed(KubeErrorKind::AlreadyExists)) {
        log_.warn("leader.not_taken", {{"lease", options_.name}, {"why", got.error().text()}});
        // The write may still have succeeded.
        const KubeResult<Json> seen = client_.get(leases(options_.ns), options_.name, limits);
        if (seen && holderOf(seen.value()) == options_.identity) return lead(seen.value(), asked);
    }
    return Standing::Follower;
}

LeaderLease::Standing LeaderLease::lead(Json record, TimePoint asked) {
    record_ = std::move(record);
    epoch_ = epochOf(record_);
    {
        const MutexLock lock(mutex_);
        holder_ = {options_.identity, options_.address, epoch_};
        renewed_ = asked;
    }
    return Standing::Leader;
}

LeaderLease::Standing LeaderLease::renew() {
    const TimePoint asked = clock_.now();
    const CallLimits limits{.timeout = kCall, .stop = &stopped_};
    KubeResult<Json> got = client_.replace(leases(options_.ns), renewed(record_), limits);
    if (got.failed(KubeErrorKind::NotFound)) {  // somebody deleted it; the term stays
        Json again = renewed(record_);
        for (const char* key : {"resourceVersion", "uid"}) again["metadata"].erase(key);
        got = client_.create(leases(options_.ns), again, limits);
    }
    if (got) {
        if (!trouble_.empty()) log_.info("leader.renewed", {{"lease", options_.name}});
        trouble_.clear();
        return lead(std::move(got).value(), asked);
    }
    if (got.failed(KubeErrorKind::Conflict) || got.failed(KubeErrorKind::AlreadyExists)) {
        KubeResult<Json> seen = client_.get(leases(options_.ns), options_.name, limits);
        if (seen && holderOf(seen.value()) != options_.identity) {
            observe(seen.value());
            return depose("the Lease is held by " + holderOf(seen.value()));
        }
        if (seen) record_ = std::move(seen).value();
        return Standing::Leader;
    }
    const std::string why = got.error().text();
    if (why != trouble_) {
        log_.warn("leader.not_renewed",
                  {{"lease", options_.name},
                   {"why", why},
                   {"hint", "claims are served; nothing is made or destroyed meanwhile"}});
    }
    trouble_ = why;
    return Standing::Leader;
}

LeaderLease::Standing LeaderLease::depose(const std::string& why) {
    why_ = why;
    const MutexLock lock(mutex_);
    renewed_.reset();
    return Standing::Deposed;
}

bool LeaderLease::awaitTurn(const std::stop_token& stop,
                            const std::function<void(const LeaseHolder&)>& changed) {
    LeaseHolder before;
    while (!stop.stop_requested()) {
        if (step() == Standing::Leader) return true;
        const LeaseHolder now = holder();
        if (now != before) changed(now);
        before = now;
        wait(stop);
    }
    return false;
}

void LeaderLease::wait(const std::stop_token& stop) {
    const std::chrono::milliseconds most = pause();
    const MutexLock lock(mutex_);
    wake_.waitFor(mutex_, stop, most, [] { return false; });
}

void LeaderLease::keep(std::function<void(const std::string&)> deposed) {
    keeper_ = std::jthread([this, deposed = std::move(deposed)](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            wait(stop);
            if (stop.stop_requested()) return;
            if (step() == Standing::Deposed) return deposed(why_);
        }
    });
}

void LeaderLease::release() {
    keeper_.request_stop();
    if (keeper_.joinable()) keeper_.join();
    if (standing_ != Standing::Leader) return;
    Json free = renewed(record_);
    {
        const MutexLock lock(mutex_);
        renewed_.reset();  // another may lead before the answer
    }
    free["spec"]["holderIdentity"] = "";
    free["spec"]["leaseDurationSeconds"] = 1;
    const KubeResult<Json> done = client_.replace(leases(options_.ns), free, {.timeout = kCall});
    if (!done) {
        log_.warn("leader.not_released", {{"lease", options_.name}, {"why", done.error().text()}});
    }
    standing_ = depose("it was released");
}

LeaseHolder LeaderLease::holder() const {
    const MutexLock lock(mutex_);
    return holder_;
}

bool LeaderLease::fresh() const {
    const MutexLock lock(mutex_);
    return renewed_ && clock_.now() - *renewed_ < options_.fresh_for;
}

}  // namespace hearth::pool::kubernetes
