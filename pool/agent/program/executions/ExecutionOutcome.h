#pragma once

#include <sys/resource.h>

#include <string>
#include <string_view>
#include <utility>

#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// How an execution ended: the status of its process, what it used, and the report on it.
class ExecutionOutcome {
public:
    /// Adds the preparation's usage.
    void prepared(const rusage& usage) { preparation_ = usage; }
    /// False if it was called before.
    bool timeOut() noexcept { return !std::exchange(timed_out_, true); }
    /// The driver's JSON about an uncaught exception.
    void report(std::string_view text) { report_ = text; }
    /// `status` is that of wait(2).
    void ended(const Settings& settings, int status, const rusage& usage);

    void addTo(JsonValue& result) const;

private:
    int status_ = 0;
    rusage usage_{};
    rusage preparation_{};
    std::string report_;
    bool timed_out_ = false;
};

}  // namespace hearth::agent
