#include "api/rest/streams/ClaimStreams.h"

#include <pthread.h>

#include <exception>
#include <utility>
#include <variant>

#include "api/http/Problem.h"
#include "api/rest/streams/Sse.h"
#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::rest {
namespace {

constexpr std::chrono::seconds kLookAgain{1};

Json progressJson(const controller::ClaimWait::Progress& progress) {
    Json data{{"for", progress.what_for}};
    data["place"] = progress.place > 0 ? Json(progress.place) : Json();
    data["of"] = progress.place > 0 ? Json(progress.of) : Json();
    data["estimateSeconds"] = progress.estimate ? Json(progress.estimate->count()) : Json();
    return data;
}

}  // namespace

/// One answer. It belongs to the looking thread while it waits, then to the one running its claim.
struct ClaimStreams::Waiting {
    std::string tenant;
    std::shared_ptr<api::Stream> stream;
    std::shared_ptr<controller::ClaimWait> wait;
    Run run;
    api::ProblemContext context;
    std::shared_ptr<void> subscription;
    std::string told;  ///< the last `waiting`

    void fail(const Error& error) const {
        const api::Response response = api::problem(error, context);
        stream->send(sseEvent("problem", 0, parseJson(std::get<std::string>(response.body))));
        stream->finish();
    }
};

std::shared_ptr<ClaimStreams::Waiting> ClaimStreams::Inbox::next(std::shared_ptr<void>& place) {
    const auto one = to_run.popIf([&](const std::string& tenant) {
        place = places.take(tenant);
        return place != nullptr;
    });
    return one.value_or(nullptr);
}

void ClaimStreams::Inbox::mark() {
    const MutexLock lock(mutex);
    news = true;
    changed.notifyOne();
}

ClaimStreams::ClaimStreams(const Clock& clock) : clock_(clock) {
    threads_.emplace_back([this](const std::stop_token& stop) { lookLoop(stop); });
    ::pthread_setname_np(threads_.back().native_handle(), "claim-streams");
    for (std::size_t i = 0; i < kRunners; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { runLoop(stop); });
        ::pthread_setname_np(threads_.back().native_handle(), "claim-run");
    }
}

ClaimStreams::~ClaimStreams() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
    std::vector<std::shared_ptr<Waiting>> left;
    Line due;
    const MutexLock lock(inbox_->mutex);
    left.swap(inbox_->waiting);
    std::swap(due, inbox_->to_run);
}

api::Response ClaimStreams::answer(const api::Request& request, const std::string& tenant,
                                   std::shared_ptr<controller::ClaimWait> wait, Run run) {
    const auto one = std::make_shared<Waiting>();
    one->tenant = tenant;
    one->wait = std::move(wait);
    one->run = std::move(run);
    one->context = api::problemContext(request);
    return sseResponse([inbox = inbox_, one](std::shared_ptr<api::Stream> stream) {
        one->stream = std::move(stream);
        const auto mark = [weak = std::weak_ptr<Inbox>(inbox)] {
            if (const std::shared_ptr<Inbox> alive = weak.lock()) alive->mark();
        };
        one->stream->onClosed(mark);
        one->subscription = one->wait->subscribe(mark);
        {
            const MutexLock lock(inbox->mutex);
            inbox->waiting.push_back(one);
        }
        inbox->mark();
    });
}

void ClaimStreams::lookLoop(const std::stop_token& stop) {
    while (true) {
        std::vector<std::shared_ptr<Waiting>> now;
        {
            const MutexLock lock(inbox_->mutex);
            inbox_->changed.waitFor(inbox_->mutex, stop, kLookAgain,
                                    [this]()
                                        HEARTH_REQUIRES(inbox_->mutex) { return inbox_->news; });
            if (stop.stop_requested()) return;
            inbox_->news = false;
            now.swap(inbox_->waiting);
        }
        // Ended ones are released here, without the lock: that takes them out of their lines.
        std::erase_if(now, [this](const auto& one) { return !look(one); });
        const MutexLock lock(inbox_->mutex);
        inbox_->waiting.insert(inbox_->waiting.begin(), now.begin(), now.end());
    }
}

bool ClaimStreams::look(const std::shared_ptr<Waiting>& one) {
    if (one->stream->closed()) return false;
    if (one->wait->due() || clock_.now() >= one->wait->until()) {
        const MutexLock lock(inbox_->mutex);
        inbox_->to_run.push(one->tenant, one);
        inbox_->due.notifyOne();
        return false;
    }
    const auto progress = one->wait->progress();
    if (!progress || one->stream->pending() > 0) return true;
    std::string event = sseEvent("waiting", 0, progressJson(*progress));
    if (event != one->told) one->stream->send(event);
    one->told = std::move(event);
    return true;
}

void ClaimStreams::runLoop(const std::stop_token& stop) {
    while (true) {
        std::shared_ptr<Waiting> one;
        std::shared_ptr<void> place;
        {
            const MutexLock lock(inbox_->mutex);
            inbox_->due.wait(inbox_->mutex, stop, [&]() HEARTH_REQUIRES(inbox_->mutex) {
                one = inbox_->next(place);
                return one != nullptr;
            });
            if (stop.stop_requested() || !one) return;
        }
        // A waiter for a place of this tenant looks again once the place is free.
        const ScopeExit freed([this, &place] {
            const MutexLock lock(inbox_->mutex);
            place.reset();
            inbox_->due.notifyOne();
        });
        if (one->stream->closed()) continue;
        // The top of this thread: a failure is reported on its own stream.
        try {
            controller::ClaimPatience patience;
            patience.waits = false;
            patience.wait = one->wait;
            one->run(one->stream, patience);
        } catch (const controller::MustWait&) {  // for another sandbox than the one that failed
            one->subscription = one->wait->subscribe([weak = std::weak_ptr<Inbox>(inbox_)] {
                if (const std::shared_ptr<Inbox> alive = weak.lock()) alive->mark();
            });
            {
                const MutexLock lock(inbox_->mutex);
                inbox_->waiting.push_back(one);
            }
            inbox_->mark();
        } catch (const Error& e) {
            one->fail(e);
        } catch (const std::exception&) {
            one->fail(Error(ErrorCode::Internal, "the server failed to answer this request"));
        }
    }
}

}  // namespace hearth::rest
