#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "api/config/ServeConfig.h"
#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "controller/egress/EgressGateway.h"
#include "controller/store/SpecStore.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/warm/WarmPool.h"

namespace hearth::program {

/// What the runtime says about itself, asked at most four times a second, because the question may
/// start a process. Thread-safe.
class FreshFacts {
public:
    using Ask = std::function<pool::RuntimeFacts()>;
    FreshFacts(Ask ask, const Clock& clock) : ask_(std::move(ask)), clock_(clock) {}
    /// A caller that comes while the runtime is being asked waits for that answer.
    pool::RuntimeFacts get();

    static constexpr std::chrono::milliseconds kFresh{250};

private:
    const Ask ask_;
    const Clock& clock_;
    Mutex mutex_;
    Condition answered_;
    bool asking_ HEARTH_GUARDED_BY(mutex_) = false;
    std::optional<TimePoint> at_ HEARTH_GUARDED_BY(mutex_);  ///< when the answer came
    pool::RuntimeFacts facts_ HEARTH_GUARDED_BY(mutex_);
};

/// The document of GET /v1/capabilities: the runtime, the isolation in force, images, languages,
/// ways out, protocols. Thread-safe.
Json capabilities(const cli::ServeConfig& config, const pool::RuntimeFacts& facts,
                  const controller::SpecStore& specs, const pool::WarmPool& warm,
                  const broker::EgressGateway& broker);

}  // namespace hearth::program
