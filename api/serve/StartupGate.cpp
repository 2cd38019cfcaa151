#include "api/serve/StartupGate.h"

#include "base/Error.h"

namespace hearth::program {
namespace {

constexpr std::chrono::seconds kComeBack{2};

}  // namespace

api::Response StartupGate::handle(api::Request& request) {
    if (!open_) {
        throw Error(ErrorCode::Unavailable, "the server is still starting")
            .hint("/readyz of the operations listener says what it is doing")
            .retryAfter(kComeBack);
    }
    return inside_.handle(request);
}

void StartupGate::say(std::string doing) {
    const MutexLock lock(mutex_);
    doing_ = std::move(doing);
}

std::string StartupGate::doing() const {
    const MutexLock lock(mutex_);
    return doing_;
}

}  // namespace hearth::program
