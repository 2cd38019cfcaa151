#include "pool/runtime/kubernetes/client/Reflector.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Ids.h"

namespace hearth::pool::kubernetes {
namespace {

using Failure = KubeErrorKind;
using State = ReflectorCondition::State;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// A watch that lived this long was accepted by the server.
constexpr seconds kLived{1};
/// After this long without a failure, the delays start again from the first.
constexpr seconds kHealthy{120};
/// How long 500s may concern the watch before a list is tried.
constexpr seconds kMostInternal{60};
/// The number of consecutive broken streamed lists after which this reflector lists in pages.
constexpr unsigned kMostUnfinished = 2;
constexpr nanoseconds kAtOnce{0};

double randomNumber() {
    std::uint32_t bits = 0;
    randomBytes(&bits, sizeof bits);
    return static_cast<double>(bits) / 4'294'967'296.0;
}

State stateAfter(Failure kind) {
    switch (kind) {
        case Failure::NotFound:
            return State::Missing;
        case Failure::Forbidden:
            return State::Forbidden;
        case Failure::Unauthorized:
            return State::Unauthorized;
        default:
            return State::Behind;
    }
}

RestartReason reasonOf(Failure kind) {
    switch (kind) {
        case Failure::TooManyRequests:
        case Failure::Unavailable:
            return RestartReason::Throttled;
        case Failure::Unreachable:
        case Failure::Timeout:
            return RestartReason::Broken;
        default:
            return RestartReason::Refused;
    }
}

ReflectorOptions withRandom(ReflectorOptions options) {
    if (!options.random) options.random = randomNumber;
    return options;
}

}  // namespace

Reflector::Reflector(KubernetesClient& client, KubeResource resource, ObjectCache& cache,
                     const Clock& clock, ReflectorOptions options)
    : client_(client),
      resource_(std::move(resource)),
      cache_(cache),
      clock_(clock),
      options_(withRandom(std::move(options))),
      watch_(client.access()),
      backoff_(options_.random) {
    const MutexLock lock(mutex_);
    condition_.since = clock_.wall();
}

nanoseconds Reflector::step() {
    if (watch_.stopped()) return kAtOnce;
    return next_ == Next::Watch || streams() ? watch() : list();
}

void Reflector::run(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { this->stop(); });
    while (!watch_.stopped()) {
        const nanoseconds delay = step();
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, delay, [this] { return watch_.stopped(); });
    }
}

void Reflector::stop() noexcept {
    watch_.stop();
    const MutexLock lock(mutex_);  // else run() could begin to wait in between
    wake_.notifyAll();
}

ReflectorCondition Reflector::condition() const {
    const MutexLock lock(mutex_);
    return condition_;
}

bool Reflector::ready() const {
    return cache_.hasSynced() && condition().state != State::Missing;
}

/// A streamed list saves the server a copy of everything; servers before 1.27 lack it.
bool Reflector::streams() const {
    return next_ != Next::ListWhole && client_.streamsLists() &&
           unfinished_streams_ < kMostUnfinished;
}

nanoseconds Reflector::list() {
    ListQuery query{.label_selector = options_.label_selector,
                    .field_selector = options_.field_selector};
    if (next_ == Next::ListLatest) query.limit = options_.page;
    if (next_ == Next::ListAtVersion) query.resource_version = version_;
    const CallLimits limits{.timeout = options_.list_timeout, .stop = &watch_.stopFlag()};
    std::vector<Json> items;
    std::string version;
    do {
        KubeResult<ObjectPage> answer = client_.list(resource_, query, limits);
        if (!answer) return listFailed(answer.error());
        ObjectPage page = std::move(answer).value();
        for (Json& item : page.items) items.push_back(std::move(item));
        version = std::move(page.resource_version);
        query.continue_from = std::move(page.next);
    } while (!query.continue_from.empty());
    listed(std::move(items), std::move(version));
    return kAtOnce;
}

void Reflector::listed(std::vector<Json> items, std::string version) {
    cache_.replace(std::move(items));
    version_ = std::move(version);
    next_ = Next::Watch;
    settled_ = false;
    internal_since_.reset();
    ahead_ = 0;
    unfinished_streams_ = 0;
    follow();
}

nanoseconds Reflector::listFailed(const KubeError& error) {
    if (error.kind == Failure::Stopped) return kAtOnce;
    const bool at_version = next_ == Next::ListAtVersion;
    if (error.kind == Failure::Gone && next_ != Next::ListWhole) {
        // The continue token that the server now offers would mix two versions in one list.
        next_ = at_version ? Next::ListLatest : Next::ListWhole;
        restarted(RestartReason::Expired);
        return kAtOnce;
    }
    if (error.kind == Failure::VersionTooLarge && at_version) {
        if (++ahead_ > 1) next_ = Next::ListLatest;
        restarted(RestartReason::Ahead);
    } else {
        restarted(reasonOf(error.kind));
    }
    // The version may be older than a restore of the server's data.
    if (at_version && (error.kind == Failure::BadRequest || error.kind == Failure::Invalid)) {
        next_ = Next::ListLatest;
    }
    fail(error);
    return backoff(&error);
}

std::string Reflector::watchTarget(bool streamed, seconds length) const {
    KubeQuery query;
    query.add("watch", "true")
        .add("allowWatchBookmarks", "true")
        .add("labelSelector", options_.label_selector)
        .add("fieldSelector", options_.field_selector)
        .add("resourceVersion", streamed && next_ != Next::ListAtVersion ? "" : version_)
        .add("sendInitialEvents", streamed ? "true" : "")
        .add("resourceVersionMatch", streamed ? "NotOlderThan" : "")
        .add("timeoutSeconds", std::to_string(length.count()));
    return resource_.path() + query.text();
}

nanoseconds Reflector::watch() {
    const bool streamed = next_ != Next::Watch;
    const double span =
        static_cast<double>((options_.longest_watch - options_.shortest_watch).count());
    const seconds length =
        options_.shortest_watch + seconds(static_cast<std::int64_t>(span * options_.random()));
    Watched watched;
    if (streamed) watched.initial.emplace();
    const WatchConnection::Listener listener{
        .on_open = [&] { opened(watched); },
        .on_line = [&](std::string_view line) { return take(watched, line); }};
    const KubeResult<WatchEnd> end = watch_.run(
        watchTarget(streamed, length),
        {.answer = options_.answer_timeout, .silence = length + options_.patience}, listener);
    if (watch_.stopped()) return kAtOnce;
    if (streamed && !end && (end.failed(Failure::Invalid) || end.failed(Failure::BadRequest))) {
        client_.noStreamedLists();
        return kAtOnce;
    }
    if (lived(watched) || watched.events) {
        settled_ = true;
        internal_since_.reset();
    }
    if (watched.unreadable) {
        if (watched.initial) ++unfinished_streams_;
        fail(State::Behind, "a watch brought a line that is no event");
        return relist(RestartReason::Unreadable, backoff());
    }
    if (watched.failure) return watchFailed(watched, *watched.failure);
    return end ? watchEnded(watched, end.value()) : watchFailed(watched, end.error());
}

/// Reports health at once, because a quiet resource may have no events for minutes.
void Reflector::opened(Watched& watched) {
    watched.opened = clock_.now();
    if (!watched.initial) follow();
}

bool Reflector::take(Watched& watched, std::string_view line) {
    std::optional<WatchEvent> event = parseWatchEvent(line);
    if (!event) {
        watched.unreadable = true;
        return false;
    }
    if (event->kind == WatchEvent::Kind::Failure) {
        watched.failure = errorOf(event->object);
        return false;
    }
    watched.events = true;
    ahead_ = 0;
    apply(watched, std::move(*event));
    return true;
}

void Reflector::apply(Watched& watched, WatchEvent event) {
    if (watched.initial) {
        applyInitial(watched, std::move(event));
        return;
    }
    switch (event.kind) {
        case WatchEvent::Kind::Deleted:
            cache_.remove(event.object);
            break;
        case WatchEvent::Kind::Bookmark:
            break;
        default:
            cache_.put(std::move(event.object));
    }
    version_ = std::move(event.version);
    follow();
}

/// Changes during the transfer arrive among the objects, before the bookmark.
void Reflector::applyInitial(Watched& watched, WatchEvent event) {
    if (event.kind == WatchEvent::Kind::Bookmark) {
        if (!event.ends_initial) return;
        std::vector<Json> items;
        for (auto& [key, object] : *watched.initial) items.push_back(std::move(object));
        watched.initial.reset();
        listed(std::move(items), std::move(event.version));
        return;
    }
    const std::string key = objectKey(event.object);
    if (event.kind == WatchEvent::Kind::Deleted) {
        watched.initial->erase(key);
    } else {
        (*watched.initial)[key] = std::move(event.object);
    }
}

nanoseconds Reflector::watchEnded(const Watched& watched, WatchEnd end) {
    if (watched.initial) ++unfinished_streams_;
    switch (end) {
        case WatchEnd::LongLine:
            fail(State::Behind, "a watch brought a line that is too long");
            return relist(RestartReason::Unreadable, backoff());
        case WatchEnd::Silent:
            restarted(RestartReason::Silent);
            return kAtOnce;
        case WatchEnd::Clean:
            restarted(RestartReason::Ended);
            // A server that ends every watch at once must not be called in a tight loop.
            return lived(watched) || watched.events ? kAtOnce : backoff();
        default:
            restarted(RestartReason::Broken);
            fail(State::Behind, "the connection of a watch broke");
            return backoff();
    }
}

nanoseconds Reflector::watchFailed(const Watched& watched, const KubeError& error) {
    if (watched.initial) {
        if (watched.failure) ++unfinished_streams_;
        return listFailed(error);
    }
    switch (error.kind) {
        case Failure::Gone:
            // Usual after a restart of an API server: all versions are too old.
            return relist(RestartReason::Expired, settled_ ? kAtOnce : backoff());
        case Failure::VersionTooLarge:
            fail(error);
            restarted(RestartReason::Ahead);
            if (++ahead_ > 1) {
                ahead_ = 0;
                next_ = Next::ListLatest;
            }
            return backoff(&error);
        case Failure::Internal:
            return internalError(error);
        case Failure::NotFound:
        case Failure::BadRequest:
        case Failure::Invalid:
        case Failure::Malformed:
            fail(error);
            return relist(reasonOf(error.kind), backoff(&error));
        default:
            fail(error);
            restarted(reasonOf(error.kind));
            return backoff(&error);
    }
}

nanoseconds Reflector::internalError(const KubeError& error) {
    const TimePoint now = clock_.now();
    if (!internal_since_) internal_since_ = now;
    fail(error);
    if (now - *internal_since_ >= kMostInternal) {
        internal_since_.reset();
        return relist(RestartReason::Refused, backoff(&error));
    }
    restarted(RestartReason::Refused);
    return backoff(&error);
}

nanoseconds Reflector::relist(RestartReason reason, Delay delay) {
    next_ = version_.empty() ? Next::ListLatest : Next::ListAtVersion;
    restarted(reason);
    return delay;
}

nanoseconds Reflector::backoff(const KubeError* error) {
    if (healthy_since_ && clock_.now() - *healthy_since_ >= kHealthy) backoff_.reset();
    healthy_since_.reset();
    nanoseconds delay = backoff_.next();
    // Adds a part of the jitter, so that clients refused together return at different times.
    if (error != nullptr && error->retry_after) delay = *error->retry_after + delay / 10;
    return delay;
}

bool Reflector::lived(const Watched& watched) const {
    return watched.opened && clock_.now() - *watched.opened >= kLived;
}

void Reflector::restarted(RestartReason reason) const {
    if (options_.on_restart) options_.on_restart(reason);
}

void Reflector::follow() {
    if (!healthy_since_) healthy_since_ = clock_.now();
    become({.state = State::Following});
}

void Reflector::fail(const KubeError& error) {
    fail(stateAfter(error.kind), error.text());
}

void Reflector::fail(State state, const std::string& message) {
    become({.state = state, .message = resource_.text() + ": " + message});
}

void Reflector::become(ReflectorCondition condition) {
    {
        const MutexLock lock(mutex_);
        if (condition_ == condition) return;
        condition.since = condition.state == condition_.state ? condition_.since : clock_.wall();
        condition_ = condition;
    }
    if (options_.on_condition) options_.on_condition(condition);
}

}  // namespace hearth::pool::kubernetes
