#include "api/serve/standby/LeaseWatch.h"

#include <utility>

namespace hearth::program {
namespace {

constexpr auto kAskAgain = std::chrono::seconds(2);

}  // namespace

LeaseWatch::LeaseWatch(Leadership& leadership, Bar bar)
    : leadership_(leadership), bar_(std::move(bar)) {
    subscription_ = leadership_.subscribe([this] { look(); });
    look();
}

void LeaseWatch::look() {
    const MutexLock lock(mutex_);  // so the last call uses the latest state
    std::optional<Error> why;
    if (!leadership_.sure()) {
        why = Error(ErrorCode::Unavailable,
                    "no sandbox is free, and none is made: this replica cannot renew its "
                    "Lease, and another may lead")
                  .hint("try again; keyed calls are safe to repeat")
                  .retryAfter(kAskAgain);
    }
    bar_(std::move(why));
}

}  // namespace hearth::program
