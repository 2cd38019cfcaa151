#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/tenants/FairLine.h"
#include "base/tenants/TenantPlaces.h"
#include "controller/claims/ClaimWait.h"
#include "controller/contract/ClaimPatience.h"

namespace hearth::rest {

/// Answers that stream while their claim waits in line: `waiting` reports its place, and the
/// claim's last run sends the rest. One thread serves all streams, and a few threads run claims;
/// one tenant never has all of them, and a waiting claim holds none. A client that hangs up leaves
/// the line. Thread-safe; must outlive the front.
class ClaimStreams {
public:
    explicit ClaimStreams(const Clock& clock);
    ~ClaimStreams();
    ClaimStreams(const ClaimStreams&) = delete;
    ClaimStreams& operator=(const ClaimStreams&) = delete;

    /// Claims with this patience and continues the stream. Throws MustWait if it still has to wait;
    /// an Error is sent as `problem`, the last event.
    using Run =
        std::function<void(const std::shared_ptr<api::Stream>&, const controller::ClaimPatience&)>;
    /// The answer to a request of `tenant` whose claim waits in line with `wait`. `run` owns the
    /// objects it uses. Tenants take turns for the threads that run claims.
    api::Response answer(const api::Request& request, const std::string& tenant,
                         std::shared_ptr<controller::ClaimWait> wait, Run run);

private:
    static constexpr std::size_t kRunners = 4;

    struct Waiting;
    using Line = FairLine<std::shared_ptr<Waiting>>;
    /// The part that foreign callbacks use; it outlives this object as long as they need it.
    struct Inbox {
        Mutex mutex;
        StoppableCondition changed;
        StoppableCondition due;
        bool news HEARTH_GUARDED_BY(mutex) = false;
        std::vector<std::shared_ptr<Waiting>> waiting HEARTH_GUARDED_BY(mutex);
        Line to_run HEARTH_GUARDED_BY(mutex);
        TenantPlaces places{kRunners, kRunners - 1};  ///< taken while the mutex is held

        void mark();
        /// The next claim to run whose tenant may have a thread, and its place.
        std::shared_ptr<Waiting> next(std::shared_ptr<void>& place) HEARTH_REQUIRES(mutex);
    };

    void lookLoop(const std::stop_token& stop);
    void runLoop(const std::stop_token& stop);
    /// False if it need not be looked at any more.
    bool look(const std::shared_ptr<Waiting>& one);

    const Clock& clock_;
    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::rest
