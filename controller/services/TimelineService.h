#pragma once

#include "controller/contract/Executions.h"
#include "controller/contract/Timeline.h"
#include "controller/store/History.h"

namespace hearth::controller {

/// Makes timelines from the journal, and from executions that still run. Thread-safe.
class TimelineService final : public Timelines {
public:
    TimelineService(Executions& executions, const History& history)
        : executions_(executions), history_(history) {}

    Timeline ofWorkspace(const Principal& who, const std::string& id) override;
    Timeline ofExecution(const Principal& who, const std::string& id) override;

private:
    Executions& executions_;
    const History history_;
};

}  // namespace hearth::controller
