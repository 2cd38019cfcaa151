#include "pool/agent/program/executions/OutputStream.h"

#include <algorithm>
#include <utility>

#include "pool/agent/program/executions/Execution.h"

namespace hearth::agent {

namespace {
constexpr std::uint64_t kMaxCredit = 64U << 20U;
constexpr std::size_t kMaxLeftInput = 1U << 20U;
constexpr std::size_t kOutputPiece = 65'536;
}  // namespace

OutputStream::OutputStream(Connection& connection, std::uint32_t id, Execution& execution,
                           std::uint64_t from, std::uint64_t results_from)
    : connection_(connection),
      id_(id),
      execution_(&execution),
      cursor_(from),
      results_cursor_(results_from) {
    execution.streams_.push_back(this);
}

void OutputStream::detach() {
    if (execution_ == nullptr) return;
    Execution& e = *execution_;
    e.streams_.erase(std::find(e.streams_.begin(), e.streams_.end(), this));
    execution_ = nullptr;
    if (e.paused_) e.pace();  // maybe no stream is left to wait for
    if (e.left_input_.size() + input_.size() <= kMaxLeftInput) e.left_input_ += input_;
    input_.clear();
}

void OutputStream::data(std::string_view bytes) {
    if (execution_ == nullptr) return;
    if (input_ended_ || input_.size() + bytes.size() > kInitialCredit) {
        return connection_.closeAfterFlush();  // a client that ignores its window
    }
    execution_->owner_.active();
    input_ += bytes;
    execution_->feed();
}

void OutputStream::end() {
    input_ended_ = true;
    if (execution_ != nullptr) execution_->feed();
}

void OutputStream::credit(std::uint32_t bytes) {
    credit_ = std::min(credit_ + bytes, kMaxCredit);
    pump();
}

void OutputStream::pump() {
    Execution* const execution = execution_;  // its reply ends this stream
    send();
    if (execution != nullptr && execution->paused_) execution->pace();
}

void OutputStream::send() {
    while (execution_ != nullptr && !execution_->holds() && connection_.roomy()) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(credit_, kOutputPiece));
        const ResultLog::Piece shown = execution_->results_.read(results_cursor_, most);
        const std::uint64_t before = shown.behind > cursor_ ? shown.behind - cursor_ : 0;
        const OutputLog::Chunk chunk = execution_->log_.read(
            cursor_, static_cast<std::size_t>(std::min<std::uint64_t>(most, before)));
        if (chunk.bytes.empty() || chunk.offset >= shown.behind) {
            if (results_cursor_ < execution_->results_.size()) {
                if (shown.bytes.empty()) return tellEnd();  // no credit
                connection_.output(id_, Channel::Results, results_cursor_, shown.bytes);
                results_cursor_ += shown.bytes.size();
                credit_ -= shown.bytes.size();
                continue;
            }
            if (cursor_ < execution_->log_.total()) return tellEnd();  // no credit
            if (!execution_->finished_) return;
            JsonValue body = JsonValue::object();
            body.set("result", execution_->result());
            return connection_.reply(id_, body);
        }
        if (chunk.offset > cursor_) tellGap(chunk.offset);
        connection_.output(id_, chunk.channel, chunk.offset, chunk.bytes);
        cursor_ = chunk.offset + chunk.bytes.size();
        credit_ -= chunk.bytes.size();
    }
}

void OutputStream::tellGap(std::uint64_t end) {
    JsonValue gap = JsonValue::object();
    gap.set("to", static_cast<std::int64_t>(end));
    gap.set("stderr", static_cast<std::int64_t>(execution_->log_.stderrBefore(end)));
    JsonValue body = JsonValue::object();
    body.set("gap", std::move(gap));
    connection_.note(id_, body);
}

void OutputStream::tellEnd() {
    if (!execution_->finished_ || std::exchange(end_told_, true)) return;
    JsonValue body = JsonValue::object();
    body.set("ended", true);
    connection_.note(id_, body);
}

}  // namespace hearth::agent
