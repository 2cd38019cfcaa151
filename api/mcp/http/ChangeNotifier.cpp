#include "api/mcp/http/ChangeNotifier.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "api/mcp/http/MessageSink.h"
#include "api/mcp/protocol/Era.h"
#include "api/mcp/resources/WorkspaceResources.h"

namespace hearth::mcp {
namespace {

/// The pause before each look at the events, so that a burst costs one look.
constexpr std::chrono::milliseconds kLookEvery{50};
/// The least time between two notifications of a stream.
constexpr std::chrono::seconds kTellEvery{1};
constexpr std::size_t kEventsAtOnce = 1'000;
/// The most unsent warnings of a stream; a client that does not read loses the oldest.
constexpr std::size_t kMostWarnings = 100;
constexpr const char* kWarning = "warning";

controller::Principal everybody() {
    return {"", controller::Role::Operator, ""};
}

}  // namespace

using StopCallback = std::stop_callback<std::function<void()>>;

struct ChangeNotifier::Followed {
    std::shared_ptr<api::Stream> stream;
    Listener listener;
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::set<std::string> uris;
    std::deque<std::string> warnings;
    TimePoint told_at{};
    std::unique_ptr<StopCallback> on_stop;

    void send(const std::string& method, Json params) const {
        if (!listener.subscription.is_null()) {
            params["_meta"][envelope::kSubscription] = listener.subscription;
        }
        stream->send(sseEvent(notificationMessage(method, std::move(params))));
    }
    void end() const {
        if (!listener.farewell.is_null()) stream->send(sseEvent(listener.farewell));
        stream->finish();
    }
};

void ChangeNotifier::Bell::ring() {
    const MutexLock lock(mutex);
    ringing = true;
    rung.notifyOne();
}

ChangeNotifier::ChangeNotifier(const controller::Services& services, const LogLevels& levels)
    : services_(services),
      levels_(levels),
      files_(services, [this](const std::string& tenant,
                              const std::string& uri) { fileChanged(tenant, uri); }),
      thread_([this](const std::stop_token& stop) { loop(stop); }) {}

void ChangeNotifier::follow(const std::shared_ptr<api::Stream>& stream, Listener listener,
                            std::stop_token stop) {
    auto followed = std::make_shared<Followed>();
    followed->stream = stream;
    followed->listener = std::move(listener);
    followed->on_stop =
        std::make_unique<StopCallback>(std::move(stop), [weak = std::weak_ptr<Followed>(followed)] {
            if (const auto self = weak.lock()) self->end();
        });
    std::shared_ptr<void> events;
    {
        UniqueMutexLock lock(mutex_);
        if (!events_) {
            lock.unlock();
            events = services_.events.subscribe([bell = bell_] { bell->ring(); });
            const std::uint64_t newest = newestEvent();
            lock.lock();
            if (!events_) {
                events_.swap(events);
                since_ = std::max(since_, newest);
            }
        }
        const std::string& session = followed->listener.session;
        for (const auto& other : followed_) {
            // Refusing a second stream makes clients try for ever; the newest is the one they read.
            if (!session.empty() && other->listener.session == session) other->end();
        }
        followed_.push_back(followed);
    }
    stream->onClosed([bell = bell_] { bell->ring(); });
}

std::uint64_t ChangeNotifier::newestEvent() const {
    controller::EventQuery query;
    query.limit = kEventsAtOnce;
    std::uint64_t newest = 0;
    for (const controller::Event& event : services_.events.list(everybody(), query)) {
        newest = std::max(newest, event.id);
    }
    return newest;
}

std::optional<std::shared_ptr<void>> ChangeNotifier::watch(const controller::Principal& who,
                                                           const std::string& uri) {
    if (!fileOf(uri)) return nullptr;
    std::shared_ptr<void> watched = files_.watch(who, uri);
    if (!watched) return std::nullopt;
    return watched;
}

bool ChangeNotifier::subscribe(const controller::Principal& who, const std::string& session,
                               const std::string& uri) {
    if (uri.size() > kLongestUri) return false;
    std::optional<std::shared_ptr<void>> watched = watch(who, uri);  // asks an agent: no lock
    if (!watched) return false;
    const std::string& tenant = who.tenant;
    Forgotten forgotten;  // ends after the lock
    const MutexLock lock(mutex_);
    if (!subscriptions_.contains(session)) {
        if (subscribed_by_[tenant] >= kMaxSessions) {
            forgotten =
                forget(std::find_if(subscriptions_.begin(), subscriptions_.end(),
                                    [&](const auto& one) { return one.second.tenant == tenant; }));
        }
        ++subscribed_by_[tenant];
        subscriptions_[session].tenant = tenant;
    }
    auto& uris = subscriptions_[session].uris;
    if (uris.size() >= kMaxUris && !uris.contains(uri)) return false;
    uris[uri].swap(*watched);
    return true;
}

void ChangeNotifier::unsubscribe(const std::string& session, const std::string& uri) {
    Forgotten forgotten;  // ends after the lock, as does the watch
    std::map<std::string, std::shared_ptr<void>>::node_type watch;
    const MutexLock lock(mutex_);
    const auto found = subscriptions_.find(session);
    if (found == subscriptions_.end()) return;
    watch = found->second.uris.extract(uri);
    if (found->second.uris.empty()) forgotten = forget(found);
}

ChangeNotifier::Forgotten ChangeNotifier::forget(
    std::map<std::string, Subscribed>::iterator session) {
    const auto count = subscribed_by_.find(session->second.tenant);
    if (--count->second == 0) subscribed_by_.erase(count);
    return subscriptions_.extract(session);
}

void ChangeNotifier::endSession(const std::string& session) {
    // Ended outside the lock, because ending a stream may call this object.
    std::vector<std::shared_ptr<Followed>> ended;
    Forgotten forgotten;
    {
        const MutexLock lock(mutex_);
        const auto found = subscriptions_.find(session);
        if (found != subscriptions_.end()) forgotten = forget(found);
        for (const auto& one : followed_) {
            if (one->listener.session == session) ended.push_back(one);
        }
    }
    for (const auto& one : ended) one->end();
}

void ChangeNotifier::toolsChanged() {
    {
        const MutexLock lock(mutex_);
        mark("", true, false, "");
    }
    bell_->ring();
}

void ChangeNotifier::promptsChanged() {
    {
        const MutexLock lock(mutex_);
        for (const auto& one : followed_) one->prompts |= one->listener.interest.prompts;
    }
    bell_->ring();
}

void ChangeNotifier::loop(const std::stop_token& stop) {
    bool waiting = false;
    while (!stop.stop_requested()) {
        {
            const MutexLock lock(bell_->mutex);
            const auto ringing = [this]() HEARTH_REQUIRES(bell_->mutex) { return bell_->ringing; };
            if (waiting) {
                bell_->rung.waitFor(bell_->mutex, stop, kTellEvery / 4, ringing);
            } else {
                bell_->rung.wait(bell_->mutex, stop, ringing);
            }
            if (!stop.stop_requested() && !waiting) {
                const auto never = [] { return false; };
                bell_->rung.waitFor(bell_->mutex, stop, kLookEvery, never);
            }
            bell_->ringing = false;
        }
        try {
            waiting = work();
        } catch (const std::exception& error) {
            // Late is fine: the events are still there to be read.
            services_.log.error("mcp.notices_failed", {{"error", error.what()}});
            waiting = true;
        }
    }
}

bool ChangeNotifier::work() {
    dropClosed();
    takeEvents();
    const MutexLock lock(mutex_);
    return tell();
}

void ChangeNotifier::dropClosed() {
    // Destroyed after the lock.
    std::list<std::shared_ptr<Followed>> closed;
    std::shared_ptr<void> events;
    const MutexLock lock(mutex_);
    for (auto at = followed_.begin(); at != followed_.end();) {
        const auto one = at++;
        if ((*one)->stream->closed()) closed.splice(closed.end(), followed_, one);
    }
    if (followed_.empty()) events.swap(events_);
}

void ChangeNotifier::tellCaller(const controller::Principal& who, const std::string& session) {
    const auto is_own = [&](const std::shared_ptr<Followed>& one) {
        // The streams of a client without a session are known by its token.
        const Listener& listener = one->listener;
        return listener.session == session && listener.who.tenant == who.tenant &&
               listener.who.token_id == who.token_id;
    };
    {
        const MutexLock lock(mutex_);
        if (std::none_of(followed_.begin(), followed_.end(), is_own)) return;
    }
    takeEvents();
    const MutexLock lock(mutex_);
    for (const auto& one : followed_) {
        if (is_own(one)) one->told_at = services_.clock.now() - kTellEvery;
    }
    tell();
}

void ChangeNotifier::takeEvents() {
    const MutexLock reading(taking_);
    controller::EventQuery query;
    query.limit = kEventsAtOnce;
    {
        const MutexLock lock(mutex_);
        if (!events_) return;
        query.since = since_;
    }
    for (const controller::Event& event : services_.events.list(everybody(), query)) {
        {
            const MutexLock lock(mutex_);
            // A gap: its events are unknown, so all lists may have changed.
            if (since_ != 0 && event.id > since_ + 1) mark("", true, true, "");
            since_ = event.id;
        }
        take(event);
    }
}

void ChangeNotifier::take(const controller::Event& event) {
    const auto mark = [this](const std::string& tenant, bool tools, bool resources,
                             const std::string& uri) {
        const MutexLock lock(mutex_);
        this->mark(tenant, tools, resources, uri);
    };
    if (event.type == "pool.declared" || event.type == "pool.changed" ||
        event.type == "pool.deleting" || event.type == "image.fetched") {
        mark("", true, true, "pool://" + event.pool);
    } else if (event.type.starts_with("pool.")) {
        mark("", false, false, "pool://" + event.pool);
    } else if (event.type == "workspace.created" || event.type == "workspace.reclaimed") {
        // A one shot's workspace is in no list, so no list has changed.
        mark(event.tenant, false, !event.one_shot, "workspace://" + event.resource);
        files_.look(event.resource);
    } else if (event.type == "workspace.expiring") {
        mark(event.tenant, false, false, "workspace://" + event.resource);
        warn(event.tenant, event.resource + ": " + event.message);
    } else if (event.type == "execution.finished" && wantsLogs(event.tenant)) {
        try {
            // May read the disk, so without the lock: the front's thread takes it too.
            const auto execution = services_.executions.find(
                {event.tenant, controller::Role::User, ""}, event.resource);
            const std::string workspace = execution->viewUpTo(0).workspace_id;
            mark(event.tenant, false, false, "workspace://" + workspace + "/logs");
            files_.look(workspace);
        } catch (const Error&) {  // it has been forgotten meanwhile, and so have its logs
        }
    }
}

bool ChangeNotifier::wantsLogs(const std::string& tenant) {
    const MutexLock lock(mutex_);
    return std::any_of(followed_.begin(), followed_.end(),
                       [&](const auto& one) HEARTH_REQUIRES(mutex_) {
                           return one->listener.who.tenant == tenant &&
                                  (!one->listener.interest.uris.empty() ||
                                   subscriptions_.contains(one->listener.session));
                       });
}

void ChangeNotifier::fileChanged(const std::string& tenant, const std::string& uri) {
    {
        const MutexLock lock(mutex_);
        mark(tenant, false, false, uri);
    }
    bell_->ring();
}

bool ChangeNotifier::wants(const Followed& followed, const std::string& uri) const {
    if (followed.listener.interest.uris.contains(uri)) return true;
    const auto found = subscriptions_.find(followed.listener.session);
    return !followed.listener.session.empty() && found != subscriptions_.end() &&
           found->second.uris.contains(uri);
}

void ChangeNotifier::mark(const std::string& tenant, bool tools, bool resources,
                          const std::string& uri) {
    for (const auto& one : followed_) {
        if (!tenant.empty() && one->listener.who.tenant != tenant) continue;
        one->tools |= tools && one->listener.interest.tools;
        one->resources |= resources && one->listener.interest.resources;
        if (!uri.empty() && wants(*one, uri)) one->uris.insert(uri);
    }
}

void ChangeNotifier::warn(const std::string& tenant, const std::string& text) {
    const MutexLock lock(mutex_);
    for (const auto& one : followed_) {
        const Listener& listener = one->listener;
        if (listener.who.tenant != tenant || listener.session.empty()) continue;
        const std::optional<int> least = levels_.of(listener.session);
        if (!least || logSeverity(kWarning) < *least) continue;
        one->warnings.push_back(text);
        if (one->warnings.size() > kMostWarnings) one->warnings.pop_front();
    }
}

bool ChangeNotifier::tell() {
    const TimePoint now = services_.clock.now();
    bool waiting = false;
    for (const auto& one : followed_) {
        if (!one->tools && !one->prompts && !one->resources && one->uris.empty() &&
            one->warnings.empty()) {
            continue;
        }
        // A client that does not read gets one notification later, for all changes.
        if (now - one->told_at < kTellEvery || one->stream->pending() > api::Stream::kLowWater) {
            waiting = true;
            continue;
        }
        one->told_at = now;
        if (std::exchange(one->tools, false)) {
            one->send("notifications/tools/list_changed", Json::object());
        }
        if (std::exchange(one->prompts, false)) {
            one->send("notifications/prompts/list_changed", Json::object());
        }
        if (std::exchange(one->resources, false)) {
            one->send("notifications/resources/list_changed", Json::object());
        }
        for (const std::string& uri : std::exchange(one->uris, {})) {
            one->send("notifications/resources/updated", {{"uri", uri}});
        }
        for (const std::string& text : std::exchange(one->warnings, {})) {
            one->send("notifications/message",
                      {{"level", kWarning}, {"logger", "workspaces"}, {"data", text}});
        }
    }
    return waiting;
}

}  // namespace hearth::mcp
