#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::program {

/// The runtime's facts about itself. The runtime is asked at most four times a second, because the
/// question may start a process. Thread-safe.
class FreshFacts {
public:
    using Ask = std::function<pool::RuntimeFacts()>;
    /// `ask` is called in a thread of its own; `patience`: real time.
    FreshFacts(Ask ask, const Clock& clock,
               std::chrono::milliseconds patience = std::chrono::seconds(1));
    FreshFacts(const FreshFacts&) = delete;
    FreshFacts& operator=(const FreshFacts&) = delete;

    /// Returns the facts; the earlier ones if the answer takes longer than `patience` (an Engine
    /// hangs), because callers hold workers. Throws the error of the question.
    pool::RuntimeFacts get();

    static constexpr std::chrono::milliseconds kFresh{250};

private:
    void run(const std::stop_token& stop);

    const Ask ask_;
    const Clock& clock_;
    const std::chrono::milliseconds patience_;
    Mutex mutex_;
    StoppableCondition wanted_;
    Condition answered_;
    bool asking_ HEARTH_GUARDED_BY(mutex_) = false;
    std::uint64_t answers_ HEARTH_GUARDED_BY(mutex_) = 0;
    TimePoint at_ HEARTH_GUARDED_BY(mutex_){};  ///< when the facts came
    std::optional<pool::RuntimeFacts> facts_ HEARTH_GUARDED_BY(mutex_);
    std::exception_ptr failure_ HEARTH_GUARDED_BY(mutex_);  ///< the last question's error
    std::jthread thread_;
};

}  // namespace hearth::program
