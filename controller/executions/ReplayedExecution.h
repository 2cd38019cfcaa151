#pragma once

#include <memory>
#include <utility>

#include "controller/contract/Executions.h"

namespace hearth::controller {

/// An execution as the answer to a repeated Idempotency-Key: the first request's one, marked in its
/// view. The view is separate because both requests share the execution. Thread-safe.
class ReplayedExecution final : public Execution {
public:
    explicit ReplayedExecution(std::shared_ptr<Execution> first) : first_(std::move(first)) {}

    const std::string& id() const override { return first_->id(); }
    ExecutionView viewUpTo(std::uint64_t most) const override {
        ExecutionView view = first_->viewUpTo(most);
        view.replayed = true;
        return view;
    }
    bool finished() const override { return first_->finished(); }
    bool unanswered() const override { return first_->unanswered(); }
    bool wait(std::chrono::milliseconds timeout) override { return first_->wait(timeout); }
    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override {
        return first_->read(offset, most);
    }
    ResultPtr resultAt(std::size_t index) const override { return first_->resultAt(index); }
    bool readsDisk() const override { return first_->readsDisk(); }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return first_->subscribe(std::move(changed));
    }
    std::shared_ptr<void> reading() override { return first_->reading(); }

private:
    const std::shared_ptr<Execution> first_;
};

}  // namespace hearth::controller
