#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "controller/Services.h"
#include "tests/support/FakeIds.h"
#include "tests/support/FakeSubscribers.h"

namespace hearth::test {

/// An execution whose output and end the test controls. Public members are for use between calls.
class FakeExecution final : public controller::Execution {
public:
    explicit FakeExecution(std::string id = kExecution, std::string workspace = kWorkspace) {
        state.id = std::move(id);
        state.workspace_id = std::move(workspace);
        state.tenant = "default";
        state.pool = "python";
        state.status = controller::ExecutionStatus::Running;
        state.started_at = kTime;
    }
    const std::string& id() const override { return state.id; }
    controller::ExecutionView viewUpTo(std::uint64_t most) const override {
        const std::lock_guard lock(mutex_);
        controller::ExecutionView out = state;
        for (const controller::OutputChunk& chunk : chunks) {
            out.kept_bytes += chunk.bytes.size();
            out.output_end = chunk.offset + chunk.bytes.size();
        }
        for (const controller::ResultPtr& each : out.results) {
            out.result_bytes += each->document.size();
        }
        out.result_count = out.results.size();
        out.withheld = out.kept_bytes + out.result_bytes > most;
        if (out.withheld) {
            out.stdout_bytes = out.stderr_bytes = {};
            out.results.clear();
        }
        return out;
    }
    bool finished() const override {
        const std::lock_guard lock(mutex_);
        return state.status != controller::ExecutionStatus::Running;
    }
    bool unanswered() const override { return silent; }
    bool wait(std::chrono::milliseconds timeout) override {
        if (refusal) throw Error(*refusal);
        waits.push_back(timeout);
        if (on_wait) on_wait();
        std::unique_lock lock(mutex_);
        const auto ended = [this] { return state.status != controller::ExecutionStatus::Running; };
        return patient ? ended_.wait_for(lock, timeout, ended) : ended();
    }
    std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                std::size_t most) const override {
        const std::lock_guard lock(mutex_);
        if (on_disk) ++disk_reads_[std::this_thread::get_id()];
        for (const controller::OutputChunk& chunk : chunks) {
            const std::uint64_t end = chunk.offset + chunk.bytes.size();
            if (end <= offset) continue;
            const std::uint64_t from = std::max(offset, chunk.offset);
            return controller::OutputChunk{
                from, chunk.channel,
                chunk.bytes.substr(static_cast<std::size_t>(from - chunk.offset), most)};
        }
        return std::nullopt;
    }
    controller::ResultPtr resultAt(std::size_t index) const override {
        const std::lock_guard lock(mutex_);
        if (on_disk) ++disk_reads_[std::this_thread::get_id()];
        ++result_reads_;
        return index < state.results.size() ? state.results[index] : nullptr;
    }
    bool readsDisk() const override { return on_disk; }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return subscribers_.add(std::move(changed));
    }

    void print(int channel, std::string bytes) {
        {
            const std::lock_guard lock(mutex_);
            const std::uint64_t at = outputEnd() + std::exchange(skip, 0);
            (channel == 1 ? state.stdout_bytes : state.stderr_bytes) += bytes;
            chunks.push_back({at, channel, std::move(bytes)});
        }
        subscribers_.notify();
    }
    void print(const std::string& out, const std::string& err = {}) {
        if (!out.empty()) print(1, out);
        if (!err.empty()) print(2, err);
    }
    void show(const std::string& mime, const std::string& value, bool main = false) {
        showAll({{mime, value}}, main);
    }
    void showAll(const Json& mime, bool main) {
        const Json document{{"main", main}, {"mime", mime}};
        {
            const std::lock_guard lock(mutex_);
            state.results.push_back(controller::readResult(document.dump(), outputEnd() + skip));
        }
        subscribers_.notify();
    }
    /// Only the first end counts.
    void end(const std::string& status, int code) {
        {
            const std::lock_guard lock(mutex_);
            if (state.status != controller::ExecutionStatus::Running) return;
            state.status = controller::kExecutionStatuses.find(status).value();
            state.exit_code = code;
            state.duration_ms = 3.5;
        }
        ended_.notify_all();
        subscribers_.notify();
    }
    /// Its time limit has passed, and its sandbox does not answer.
    void fallSilent() {
        silent = true;
        subscribers_.notify();
    }
    int subscriptions() const { return subscribers_.count(); }
    /// Returns how often this thread has read when that would have been a disk read.
    int diskReadsHere() const {
        const std::lock_guard lock(mutex_);
        return disk_reads_[std::this_thread::get_id()];
    }

    int resultReads() const { return result_reads_; }

    std::atomic<bool> on_disk = false;
    std::atomic<bool> silent = false;
    std::optional<Error> refusal;  ///< the error that wait() throws instead
    bool patient = false;          ///< wait() really waits
    std::vector<std::chrono::milliseconds> waits;
    std::function<void()> on_wait;
    controller::ExecutionView state;
    std::vector<controller::OutputChunk> chunks;
    std::uint64_t skip = 0;  ///< bytes that get lost before the next piece

private:
    std::uint64_t outputEnd() const {
        return chunks.empty() ? 0 : chunks.back().offset + chunks.back().bytes.size();
    }

    mutable std::mutex mutex_;
    mutable std::map<std::thread::id, int> disk_reads_;  // guarded by mutex_
    mutable std::atomic<int> result_reads_ = 0;
    std::condition_variable ended_;
    FakeSubscribers subscribers_;
};

}  // namespace hearth::test
