#include "api/rest/streams/ExecutionPieces.h"

#include <utility>

#include "api/rest/model/Answers.h"
#include "api/rest/streams/Sse.h"
#include "base/JsonText.h"
#include "controller/contract/ResultForms.h"

namespace hearth::rest {
namespace {

// The places in the document where output and results are left out. Inside a string the quotes
// would be escaped, so the first match is the field's.
constexpr std::string_view kStdout = R"("stdout":")";
constexpr std::string_view kStderr = R"(","stderr":")";
constexpr std::string_view kResults = "\"results\":[";

/// The most reads for one piece: a program that alternates between both channels makes them
/// small.
constexpr int kMostReads = 256;

std::string_view behind(std::string_view document, std::string_view mark) {
    return document.substr(document.find(mark) + mark.size());
}

}  // namespace

ExecutionPieces::ExecutionPieces(std::shared_ptr<controller::Execution> execution,
                                 controller::ExecutionView view, std::string trace_id,
                                 std::string origin, std::size_t read_size)
    : execution_(std::move(execution)),
      view_(std::move(view)),
      trace_id_(std::move(trace_id)),
      origin_(std::move(origin)),
      read_size_(read_size) {}

std::string ExecutionPieces::document() const {
    return dumpJson(executionJson(view_, trace_id_, origin_));
}

bool ExecutionPieces::next(std::string& out) {
    switch (stage_) {
        case Stage::Head: {
            const std::string text = document();
            out.append(text, 0, text.find(kStdout) + kStdout.size());
            stage_ = Stage::Stdout;
            return true;
        }
        case Stage::Stdout:
        case Stage::Stderr:
            tellOutput(out);
            return true;
        case Stage::Results:
            tellResults(out);
            return stage_ != Stage::Done;
        case Stage::Done:
            break;
    }
    return false;
}

void ExecutionPieces::tellOutput(std::string& out) {
    const int channel = stage_ == Stage::Stdout ? 1 : 2;
    std::string bytes;
    for (int reads = 0; reads < kMostReads && bytes.size() < read_size_; ++reads) {
        std::optional<controller::OutputChunk> chunk;
        if (offset_ < view_.output_end) chunk = execution_->read(offset_, read_size_);
        if (!chunk || chunk->bytes.empty() || chunk->offset >= view_.output_end) {
            tellText(out, bytes, true);
            offset_ = 0;
            text_ = controller::ChannelText(2);
            if (stage_ == Stage::Stdout) {
                out.append(kStderr);
                stage_ = Stage::Stderr;
            } else {
                afterOutput(out);
            }
            return;
        }
        if (view_.output_end - chunk->offset < chunk->bytes.size()) {
            chunk->bytes.resize(static_cast<std::size_t>(view_.output_end - chunk->offset));
        }
        offset_ = chunk->offset + chunk->bytes.size();
        text_.add(bytes, *chunk);
        if (chunk->channel == channel) told_ += chunk->bytes.size();
    }
    tellText(out, bytes, false);
}

void ExecutionPieces::tellText(std::string& out, std::string_view bytes, bool last) {
    held_.append(bytes);
    const std::size_t tail = last ? 0 : incompleteTail(held_);
    const std::string_view whole = std::string_view(held_).substr(0, held_.size() - tail);
    appendJsonText(out, whole);
    held_.erase(0, whole.size());
}

void ExecutionPieces::afterOutput(std::string& out) {
    if (told_ < view_.kept_bytes) {  // dropped or removed while it was being written
        view_.dropped_bytes += view_.kept_bytes - told_;
        view_.truncated = true;
    }
    const std::string text = document();
    const std::string_view rest = behind(text, kStderr);
    out.append(rest, 0, rest.find(kResults) + kResults.size());
    stage_ = Stage::Results;
}

void ExecutionPieces::tellResults(std::string& out) {
    if (!result_ && results_ < view_.result_count) {
        result_ = execution_->resultAt(results_);
        result_at_ = 0;
        if (result_ && results_++ > 0) out.push_back(',');
    }
    if (!result_) {
        view_.dropped_results += view_.result_count - results_;
        const std::string text = document();
        out.append(behind(behind(text, kStderr), kResults));
        stage_ = Stage::Done;
        return;
    }
    const std::string& document = result_->document;
    if (document.size() <= controller::kLongResult) {  // not always written by dumpJson()
        out.append(dumpJson(documentOf(*result_)));
        result_.reset();
        return;
    }
    out.append(document, result_at_, controller::kLongResult);
    result_at_ += controller::kLongResult;
    if (result_at_ >= document.size()) result_.reset();
}

}  // namespace hearth::rest
