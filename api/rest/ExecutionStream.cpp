#include "api/rest/ExecutionStream.h"

#include <exception>
#include <utility>

#include "api/rest/ExecutionPieces.h"
#include "api/rest/Sse.h"
#include "api/rest/Views.h"
#include "base/Ids.h"

namespace hearth::rest {
namespace {

constexpr std::size_t kPiece = 16U << 10U;

}  // namespace

void ExecutionStream::start(std::shared_ptr<controller::Execution> execution,
                            std::shared_ptr<api::Stream> stream, Options options,
                            LongAnswers& answers) {
    std::make_shared<ExecutionStream>(Key{}, std::move(execution), std::move(stream),
                                      std::move(options), answers)
        ->begin();
}

ExecutionStream::ExecutionStream(Key, std::shared_ptr<controller::Execution> execution,
                                 std::shared_ptr<api::Stream> stream, Options options,
                                 LongAnswers& answers)
    : execution_(std::move(execution)),
      stream_(std::move(stream)),
      options_(std::move(options)),
      answers_(answers) {
    found_ = options_.after.value_or(0) == 0;
    started_ = options_.after.has_value();
}

void ExecutionStream::begin() {
    // The stream's end keeps us alive until it comes; the others only know us if we still are. The
    // keeper is emptied then, so that no circle remains however long the stream keeps its callback.
    const std::weak_ptr<ExecutionStream> weak = weak_from_this();
    const auto move = [weak] {
        if (const std::shared_ptr<ExecutionStream> self = weak.lock()) self->pump();
    };
    stream_->onDrained(move);
    subscription_ = execution_->subscribe(move);
    pump();
    const auto keeper = std::make_shared<std::shared_ptr<ExecutionStream>>(shared_from_this());
    stream_->onClosed([keeper] {
        if (const std::shared_ptr<ExecutionStream> self = std::exchange(*keeper, nullptr)) {
            self->release();
        }
    });
    begun_ = true;
    pump();
}

void ExecutionStream::pump() {
    turnstile_.pass([this] {
        // The top of a callback in a foreign thread: a failure here is the end of this stream. The
        // client misses `exit`, asks again, and is told then.
        try {
            step();
        } catch (const std::exception&) {
            done_ = true;
            stream_->finish();
        }
    });
}

void ExecutionStream::step() {
    if (done_) return;
    if (!started_) {
        started_ = true;
        const controller::ExecutionView view = execution_->viewUpTo(0);
        Json data = {{"id", view.id}, {"workspaceId", view.workspace_id}};
        data["startedAt"] = view.started_at;
        if (!options_.trace_id.empty()) data["traceId"] = options_.trace_id;
        stream_->send(sseEvent("started", 0, data));
    }
    while (true) {
        if (stream_->closed()) {
            done_ = true;
            return;
        }
        if (stream_->pending() > api::Stream::kHighWater) return;  // onDrained comes back
        if (shown_) {
            sendShown();
            continue;
        }
        const bool ended = execution_->finished();  // asked first: what is read after it is all
        if (!found_ && !find() && !ended) return;
        if (done_ || !advance(ended)) return;
    }
}

bool ExecutionStream::find() {
    const bool ended = execution_->finished();
    for (const std::uint64_t after = *options_.after;;) {
        offset_ = sent_ = after - results_;
        // Output behind the place is looked for before the next result: then none before it is
        // still to come.
        const bool passed = ended || execution_->read(offset_, 1).has_value();
        const controller::ResultPtr next = execution_->resultAt(results_);
        if (next && next->behind + results_ + 1 <= after) {
            ++results_;
        } else {
            found_ = next != nullptr || passed;
            return found_;
        }
    }
}

bool ExecutionStream::advance(bool ended) {
    // Output is read before the next result: whatever stood before what was read is then known.
    std::optional<controller::OutputChunk> chunk = execution_->read(offset_, kPiece);
    if (chunk && chunk->bytes.empty()) chunk.reset();
    const controller::ResultPtr next = execution_->resultAt(results_);
    if (next && (chunk ? next->behind <= chunk->offset : ended || next->behind <= offset_)) {
        show(next);
    } else if (chunk) {
        if (next && next->behind < chunk->offset + chunk->bytes.size()) {
            chunk->bytes.resize(static_cast<std::size_t>(next->behind - chunk->offset));
        }
        take(*chunk);
    } else if (ended && begun_) {
        end();
    } else if (!next || ended) {
        return false;
    }  // else output before the result has come since it was read: look again
    return true;
}

void ExecutionStream::show(const controller::ResultPtr& result) {
    flush();
    if (result->behind > offset_) {  // the output between was not kept
        dropped_ += result->behind - offset_;
        offset_ = sent_ = result->behind;
    }
    ++results_;
    if (result->document.size() <= controller::kLongResult) {
        stream_->send(sseEvent("result", sent_ + results_, resultJson(*result)));
        return;
    }
    stream_->send(sseHead("result", sent_ + results_));
    shown_ = result;
    shown_at_ = 0;
}

void ExecutionStream::sendShown() {
    std::string piece = shown_->document.substr(shown_at_, controller::kLongResult);
    shown_at_ += piece.size();
    if (shown_at_ == shown_->document.size()) {
        shown_.reset();
        piece.append("\n\n");
    }
    stream_->send(std::move(piece));
}

void ExecutionStream::take(const controller::OutputChunk& chunk) {
    const bool gap = chunk.offset > offset_;
    if (!held_.empty() && (gap || chunk.channel != held_channel_)) flush();
    if (gap) {
        dropped_ += chunk.offset - offset_;
        sent_ = chunk.offset;
    }
    offset_ = chunk.offset + chunk.bytes.size();
    held_channel_ = chunk.channel;
    held_.append(chunk.bytes);
    const std::size_t tail = incompleteTail(held_);
    if (tail == held_.size()) return;
    std::string rest = held_.substr(held_.size() - tail);
    held_.resize(held_.size() - tail);
    sendOutput(held_);
    held_ = std::move(rest);
}

void ExecutionStream::flush() {
    if (!held_.empty()) sendOutput(held_);
    held_.clear();
}

void ExecutionStream::sendOutput(const std::string& bytes) {
    sent_ += bytes.size();
    Json data = Json::object();
    if (isUtf8(bytes)) {
        data["text"] = bytes;
    } else {
        data["base64"] = base64Encode(bytes);
    }
    if (dropped_ > 0) data["droppedBytes"] = std::exchange(dropped_, 0);
    stream_->send(sseEvent(held_channel_ == 2 ? "stderr" : "stdout", sent_ + results_, data));
}

void ExecutionStream::end() {
    flush();
    done_ = true;
    controller::ExecutionView view = execution_->viewUpTo(kLongOutput);
    Json execution = executionJson(view, options_.trace_id, options_.origin);
    std::string ending;
    if (const Json& error = execution.at("error"); !error.is_null()) {
        ending = sseEvent("error", sent_ + results_ + 1, error);
    }
    const std::uint64_t id = sent_ + results_ + 2;
    if (!view.withheld) {
        stream_->send(ending + sseEvent("exit", id, execution));
        stream_->finish();
        return;
    }
    const auto pieces = std::make_shared<ExecutionPieces>(execution_, std::move(view),
                                                          options_.trace_id, options_.origin);
    ending += sseHead("exit", id);
    // From here on the stream is theirs, and this object goes with its last callback.
    answers_.send(stream_, [pieces, ending = std::move(ending)](std::string& out) mutable {
        out.append(std::exchange(ending, {}));
        if (pieces->next(out)) return true;
        out.append("\n\n");
        return false;
    });
}

void ExecutionStream::release() {
    // Not under any lock: ending a subscription may wait for a callback that is just running.
    const std::shared_ptr<void> ended = std::move(subscription_);
}

}  // namespace hearth::rest
