#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/Services.h"
#include "tests/support/FakeExecution.h"
#include "tests/support/FakeIds.h"
#include "tests/support/FakeStock.h"

namespace hearth::test {

/// Passes each new execution to `behave`, which may end it at once or later. After keepOne() there
/// is only `execution`, which only the test changes.
class FakeExecutions final : public controller::Executions {
public:
    explicit FakeExecutions(FakeStock& stock) : stock_(stock) {}

    using Behave = std::function<void(const controller::ExecutionRequest&,
                                      const std::shared_ptr<FakeExecution>&)>;
    Behave behave = [](const controller::ExecutionRequest& given,
                       const std::shared_ptr<FakeExecution>& one) {
        one->print(given.code.value_or(given.command.value_or("")) + "\n");
        one->end("ok", 0);
    };
    std::optional<Error> refuse_kill;               ///< thrown by kill() if set; before the calls
    std::function<void(const Principal&)> at_kill;  ///< called first by kill() if set
    std::function<void()> at_find;                  ///< the same for find()
    std::shared_ptr<FakeExecution> execution;
    std::size_t times_listed = 1;          ///< how often a list contains `execution`
    std::size_t listed_reads = 0;          ///< how many entries of a list were read
    controller::ExecutionRequest request;  ///< the last; read between calls, like the others
    controller::WorkspaceRequest where;
    std::string workspace, did, input;
    bool input_closed = false;

    void keepOne() {
        execution = all_[kExecution] = std::make_shared<FakeExecution>();
        behave = [](const auto&, const auto&) {};
    }

    std::shared_ptr<controller::Execution> start(
        const Principal&, const std::string& given_workspace,
        const controller::ExecutionRequest& given) override {
        std::shared_ptr<FakeExecution> one = execution;
        {
            const std::lock_guard lock(mutex_);
            if (!one) {
                one = std::make_shared<FakeExecution>(newId("ex_"), given_workspace);
                one->patient = true;
            }
            all_[one->id()] = one;
            workspace = given_workspace;
            request = given;
        }
        behave(given, one);
        return one;
    }
    Task<std::shared_ptr<controller::Execution>> startOneShot(
        controller::Principal who, controller::WorkspaceRequest given_where,
        controller::ExecutionRequest given) override {
        Task<> taking = stock_.take();
        co_await taking;
        where = given_where;
        if (execution) execution->state.claim = controller::ClaimLedger{};
        co_return start(who, "", given);
    }
    std::shared_ptr<controller::Execution> find(const Principal&, const std::string& id) override {
        if (at_find) at_find();
        return at(id);
    }
    std::vector<controller::ListedExecution> list(const Principal&, const std::string&) override {
        if (!execution) return {};
        return std::vector<controller::ListedExecution>(
            times_listed, {execution->id(), execution->viewUpTo(0).started_at});
    }
    std::shared_ptr<controller::Execution> listed(const Principal&,
                                                  const std::string& id) override {
        ++listed_reads;
        return at(id);
    }
    std::vector<std::shared_ptr<controller::Execution>> running(const Principal&) override {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<controller::Execution>> out;
        for (const auto& [id, one] : all_) {
            if (!one->finished()) out.push_back(one);
        }
        return out;
    }
    void signal(const Principal&, const std::string& id, std::string_view name) override {
        did = "signal " + std::string(name);
        if (!execution) at(id)->end("killed", 143);
    }
    void resize(const Principal&, const std::string&, unsigned columns, unsigned rows) override {
        did = "resize " + std::to_string(columns) + " " + std::to_string(rows);
    }
    void writeStdin(const Principal&, const std::string&, std::string_view bytes,
                    bool close) override {
        input.append(bytes);
        input_closed = close;
    }
    void kill(const Principal& who, const std::string& id) override {
        if (at_kill) at_kill(who);
        if (refuse_kill) throw Error(*refuse_kill);
        if (!execution) at(id)->end("killed", 137);
    }
    std::shared_ptr<FakeExecution> at(const std::string& id) {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(id);
        if (found == all_.end()) throw Error(ErrorCode::NotFound, "no execution " + id);
        return found->second;
    }
    void endAll(const std::string& status, int exit_code) {
        std::map<std::string, std::shared_ptr<FakeExecution>> all;
        {
            const std::lock_guard lock(mutex_);
            all = all_;
        }
        for (const auto& [id, one] : all) one->end(status, exit_code);
    }
    std::shared_ptr<FakeExecution> newest() {
        const std::lock_guard lock(mutex_);
        return all_.size() == 1 ? all_.begin()->second : nullptr;
    }

private:
    FakeStock& stock_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<FakeExecution>> all_;
};

}  // namespace hearth::test
