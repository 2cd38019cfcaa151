#include "api/mcp/tools/PendingWork.h"

#include <utility>

namespace hearth::mcp {
namespace {

class ExecutionWork final : public PendingWork {
public:
    explicit ExecutionWork(std::shared_ptr<controller::Execution> execution)
        : execution_(std::move(execution)) {}

    bool finished() const override { return execution_->finished() || execution_->unanswered(); }
    void wait(std::chrono::milliseconds timeout) override { execution_->wait(timeout); }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return execution_->subscribe(std::move(changed));
    }
    std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                std::size_t most) const override {
        return execution_->read(offset, most);
    }
    std::string executionId() const override { return execution_->id(); }
    Doing doing() const override { return {"running", std::nullopt}; }

private:
    const std::shared_ptr<controller::Execution> execution_;
};

}  // namespace

std::shared_ptr<PendingWork> workOf(std::shared_ptr<controller::Execution> execution) {
    return std::make_shared<ExecutionWork>(std::move(execution));
}

}  // namespace hearth::mcp
