#include "pool/agent/program/executions/OutputStream.h"

#include <algorithm>
#include <utility>

namespace hearth::agent {

namespace {
constexpr std::uint64_t kMaxCredit = 64U << 20U;
constexpr std::size_t kOutputPiece = 65'536;
}  // namespace

OutputStream::OutputStream(Connection& connection, std::uint32_t id, StreamOwner& owner,
                           std::uint64_t from, std::uint64_t results_from)
    : connection_(connection),
      id_(id),
      owner_(&owner),
      cursor_(from),
      results_cursor_(results_from) {
    owner.opened(*this);
}

void OutputStream::detach() {
    if (owner_ == nullptr) return;
    std::exchange(owner_, nullptr)->closed(*this);
    input_.clear();
}

void OutputStream::data(std::string_view bytes) {
    if (owner_ == nullptr) return;
    if (input_ended_ || input_.size() + bytes.size() > kInitialCredit) {
        return connection_.closeAfterFlush();  // a client that ignores its window
    }
    owner_->active();
    input_ += bytes;
    owner_->feed();
}

void OutputStream::end() {
    input_ended_ = true;
    if (owner_ != nullptr) owner_->feed();
}

void OutputStream::credit(std::uint32_t bytes) {
    credit_ = std::min(credit_ + bytes, kMaxCredit);
    pump();
}

void OutputStream::pump() {
    StreamOwner* const owner = owner_;  // its reply ends this stream
    send();
    if (owner != nullptr) owner->sent();
}

void OutputStream::fail(std::string_view code, std::string_view message) {
    connection_.fail(id_, code, message);
    connection_.flush();
}

void OutputStream::send() {
    while (owner_ != nullptr && !owner_->holds() && connection_.roomy()) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(credit_, kOutputPiece));
        const ResultLog::Piece shown = owner_->results().read(results_cursor_, most);
        const std::uint64_t before = shown.behind > cursor_ ? shown.behind - cursor_ : 0;
        const OutputLog::Chunk chunk = owner_->log().read(
            cursor_, static_cast<std::size_t>(std::min<std::uint64_t>(most, before)));
        if (chunk.bytes.empty() || chunk.offset >= shown.behind) {
            if (results_cursor_ < owner_->results().size()) {
                if (shown.bytes.empty()) return tellEnd();  // no credit
                connection_.output(id_, Channel::Results, results_cursor_, shown.bytes);
                results_cursor_ += shown.bytes.size();
                credit_ -= shown.bytes.size();
                continue;
            }
            if (cursor_ < owner_->log().total()) return tellEnd();  // no credit
            if (!owner_->finished()) return;
            JsonValue body = JsonValue::object();
            body.set("result", owner_->result());
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
    gap.set("stderr", static_cast<std::int64_t>(owner_->log().stderrBefore(end)));
    JsonValue body = JsonValue::object();
    body.set("gap", std::move(gap));
    connection_.note(id_, body);
}

void OutputStream::tellEnd() {
    if (!owner_->finished() || std::exchange(end_told_, true)) return;
    JsonValue body = JsonValue::object();
    body.set("ended", true);
    connection_.note(id_, body);
}

}  // namespace hearth::agent
