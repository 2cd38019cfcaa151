#include "api/rest/streams/ExecutionStream.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "api/http/Problem.h"
#include "api/rest/model/Answers.h"
#include "api/rest/streams/Sse.h"
#include "base/Ids.h"
#include "controller/contract/ResultForms.h"

namespace hearth::rest {
namespace {

constexpr std::size_t kPiece = 16U << 10U;
/// The last place to resume after: `error` and `exit` still get larger ids.
constexpr std::uint64_t kLastPlace = std::numeric_limits<std::uint64_t>::max() - 2;

}  // namespace

void ExecutionStream::start(std::shared_ptr<controller::Execution> execution,
                            std::shared_ptr<api::Stream> stream, Options options,
                            StreamedJson& answers) {
    std::make_shared<ExecutionStream>(Key{}, std::move(execution), std::move(stream),
                                      std::move(options), answers)
        ->begin();
}

ExecutionStream::ExecutionStream(Key, std::shared_ptr<controller::Execution> execution,
                                 std::shared_ptr<api::Stream> stream, Options options,
                                 StreamedJson& answers)
    : execution_(std::move(execution)),
      stream_(std::move(stream)),
      options_(std::move(options)),
      answers_(answers) {
    if (options_.after) options_.after = std::min(*options_.after, kLastPlace);
    found_ = options_.after.value_or(0) == 0;
    started_ = options_.after.has_value();
}

void ExecutionStream::begin() {
    reading_ = execution_->reading();
    place_ = answers_.inlinePlace(stream_->tenant());
    if (place_) return beginInline();
    begun_ = true;
    const std::function<void()> news = handOver();
    subscription_ = execution_->subscribe(news);
    news();
}

void ExecutionStream::beginInline() {
    // The stream's end callback keeps this object alive until it is called; the others hold weak
    // pointers. It then empties the keeper: no cycle remains if the stream keeps its callback.
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
        // The top of a callback in a foreign thread: a failure here ends this stream. The client
        // misses `exit` and reconnects.
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
    if (!started_) sendStarted();
    while (true) {
        if (stream_->closed()) {
            done_ = true;
            return;
        }
        if (stream_->pending() > api::Stream::kHighWater) return;  // onDrained calls again
        if (ending_ || execution_->readsDisk()) {
            if (begun_) handOver();
            return;
        }
        // Checks first if it has ended: then the output read after that is complete.
        if (!move(execution_->finished())) return;
        if (!told_) continue;
        done_ = true;
        stream_->finish();
        return;
    }
}

std::function<void()> ExecutionStream::handOver() {
    done_ = true;
    return answers_.follow(
        stream_, [self = shared_from_this()](std::string& out) { return self->turn(out); });
}

Progress ExecutionStream::turn(std::string& out) {
    out_ = &out;
    if (ending_) {
        if (ending_->next(out)) return Progress::More;
        out.append("\n\n");
        return Progress::Last;
    }
    if (!started_) sendStarted();
    // Checks first if it has ended: then the output read after that is complete.
    if (!move(execution_->finished())) return Progress::Waits;
    return told_ ? Progress::Last : Progress::More;
}

void ExecutionStream::sendStarted() {
    started_ = true;
    const controller::ExecutionView view = execution_->viewUpTo(0);
    Json data = {{"id", view.id}, {"workspaceId", view.workspace_id}};
    data["startedAt"] = view.started_at;
    if (!options_.trace_id.empty()) data["traceId"] = options_.trace_id;
    send(sseEvent("started", 0, data));
}

void ExecutionStream::send(std::string bytes) {
    if (out_ != nullptr) {
        out_->append(bytes);
    } else {
        stream_->send(std::move(bytes));
    }
}

bool ExecutionStream::move(bool ended) {
    if (shown_) {
        sendShown();
        return true;
    }
    return found_ ? advance(ended) : find(ended);
}

bool ExecutionStream::find(bool ended) {
    const std::uint64_t after = *options_.after;
    offset_ = sent_ = after - results_;
    // Output is read before the next result, so that no earlier output is missing.
    const bool passed = ended || execution_->read(offset_, 1).has_value();
    const std::optional<std::uint64_t> next = nextResult();
    if (next && *next + results_ + 1 <= after) {
        ++results_;
        next_result_.reset();
        return true;
    }
    found_ = next || passed;
    return found_;
}

std::optional<std::uint64_t> ExecutionStream::nextResult() {
    if (next_result_ || no_more_results_) return next_result_;
    const bool all = execution_->readsDisk();  // then it has ended
    if (const controller::ResultPtr next = execution_->resultAt(results_)) {
        next_result_ = next->behind;
    } else {
        no_more_results_ = all;
    }
    return next_result_;
}

bool ExecutionStream::advance(bool ended) {
    // Output is read before the next result: then everything before the read output is known.
    std::optional<controller::OutputChunk> chunk = execution_->read(offset_, kPiece);
    if (chunk && chunk->bytes.empty()) chunk.reset();
    const std::optional<std::uint64_t> next = nextResult();
    if (next && (chunk ? *next <= chunk->offset : ended || *next <= offset_)) {
        const controller::ResultPtr result = execution_->resultAt(results_);
        if (result) {
            show(result);
        } else {  // the stored result is gone meanwhile
            next_result_.reset();
            no_more_results_ = true;
        }
    } else if (chunk) {
        if (next && *next < chunk->offset + chunk->bytes.size()) {
            chunk->bytes.resize(static_cast<std::size_t>(*next - chunk->offset));
        }
        take(*chunk);
    } else if (ended && begun_) {
        end();
    } else if (begun_ && execution_->unanswered()) {
        endUnanswered();
    } else if (!next || ended) {
        return false;
    }  // else output before the result has arrived since the read: look again
    return true;
}

void ExecutionStream::show(const controller::ResultPtr& result) {
    flush();
    if (result->behind > offset_) {  // the output in between was not kept
        dropped_ += result->behind - offset_;
        offset_ = sent_ = result->behind;
    }
    ++results_;
    next_result_.reset();
    if (result->document.size() <= controller::kLongResult) {
        send(sseEvent("result", sent_ + results_, documentOf(*result)));
        return;
    }
    send(sseHead("result", sent_ + results_));
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
    send(std::move(piece));
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
    send(sseEvent(held_channel_ == 2 ? "stderr" : "stdout", sent_ + results_, data));
}

void ExecutionStream::end() {
    flush();
    controller::ExecutionView view = execution_->viewUpTo(kLongOutput);
    Json execution = executionJson(view, options_.trace_id, options_.origin);
    std::string ending;
    if (const Json& error = execution.at("error"); !error.is_null()) {
        ending = sseEvent("error", sent_ + results_ + 1, error);
    }
    const std::uint64_t id = sent_ + results_ + 2;
    told_ = !view.withheld;
    if (told_) return send(ending + sseEvent("exit", id, execution));
    send(ending + sseHead("exit", id));
    ending_ = std::make_unique<ExecutionPieces>(execution_, std::move(view), options_.trace_id,
                                                options_.origin);
}

void ExecutionStream::endUnanswered() {
    flush();
    const api::Response response =
        api::problem(execution_->unansweredError(),
                     {"/v1/executions/" + execution_->id(), "", options_.trace_id});
    send(sseEvent("problem", sent_ + results_, parseJson(std::get<std::string>(response.body))));
    told_ = true;
}

void ExecutionStream::release() {
    // Not under any lock: ending a subscription may wait for a callback that is just running.
    const std::shared_ptr<void> ended = std::move(subscription_);
    const std::shared_ptr<void> read = std::move(reading_);
}

}  // namespace hearth::rest
