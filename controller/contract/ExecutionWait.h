#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/task/Waitable.h"
#include "controller/contract/Executions.h"

namespace hearth::controller {

/// Waits for the end of an execution, or until its sandbox does not answer though it should have
/// ended, or until a time has come.
class ExecutionWait final : public Waitable {
public:
    ExecutionWait(std::shared_ptr<Execution> execution, TimePoint until)
        : execution_(std::move(execution)), until_(until) {}
    bool ready() const override { return execution_->finished() || execution_->unanswered(); }
    TimePoint until() const override { return until_; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return execution_->subscribe(std::move(wake));
    }

private:
    const std::shared_ptr<Execution> execution_;
    const TimePoint until_;
};

}  // namespace hearth::controller
