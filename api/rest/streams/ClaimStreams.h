#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "base/task/Executor.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// Answers that stream while the claim of a one shot waits in line: `waiting` reports its place,
/// then the execution's own events follow. A client that hangs up leaves the line. Thread-safe;
/// must outlive the front.
class ClaimStreams {
public:
    explicit ClaimStreams(const Clock& clock)
        : clock_(clock), executor_(clock, 4, "claim-streams") {}

    /// Continues a stream with the events of the execution.
    using Begin = std::function<void(std::shared_ptr<controller::Execution>,
                                     const std::shared_ptr<api::Stream>&)>;
    /// The answer to a request of `tenant`. `start` waits; if it throws an Error, that is sent as
    /// `problem`, the last event. `begin` owns the objects it uses.
    api::Response answer(const api::Request& request, const std::string& tenant,
                         Task<std::shared_ptr<controller::Execution>> start, Begin begin);

private:
    const Clock& clock_;
    Executor executor_;
};

}  // namespace hearth::rest
