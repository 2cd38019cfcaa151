#include "api/serve/FreshFacts.h"

#include <utility>

namespace hearth::program {

FreshFacts::FreshFacts(Ask ask, const Clock& clock, std::chrono::milliseconds patience)
    : ask_(std::move(ask)),
      clock_(clock),
      patience_(patience),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

pool::RuntimeFacts FreshFacts::get() {
    const MutexLock lock(mutex_);
    if (facts_ && clock_.now() - at_ < kFresh) return *facts_;
    asking_ = true;
    wanted_.notifyOne();
    const auto answered = [this, before = answers_]()
                              HEARTH_REQUIRES(mutex_) { return answers_ != before; };
    if (!facts_) {
        answered_.wait(mutex_, answered);
    } else if (!answered_.waitFor(mutex_, patience_, answered)) {
        return *facts_;
    }
    if (failure_) std::rethrow_exception(failure_);
    return *facts_;
}

void FreshFacts::run(const std::stop_token& stop) {
    UniqueMutexLock lock(mutex_);
    while (wanted_.wait(mutex_, stop, [this]() HEARTH_REQUIRES(mutex_) { return asking_; })) {
        lock.unlock();
        std::optional<pool::RuntimeFacts> facts;
        std::exception_ptr failure;
        try {
            facts = ask_();
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (facts) {
            facts_ = std::move(facts);
            at_ = clock_.now();
        }
        failure_ = failure;
        asking_ = false;
        ++answers_;
        answered_.notifyAll();
    }
}

}  // namespace hearth::program
