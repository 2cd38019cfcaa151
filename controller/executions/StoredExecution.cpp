#include "controller/executions/StoredExecution.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "controller/contract/ChannelText.h"
#include "controller/executions/ArtifactStore.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::controller {
namespace {

/// Up to this size, output and results are in the record itself, which is read whole.
constexpr std::uint64_t kInRecord = 4U << 10U;
/// Roughly how many bytes are read from the journal at a time.
constexpr std::size_t kPiece = 32U << 10U;
constexpr std::size_t kEntryHead = 13;
/// The most bytes read at a time when output is copied whole.
constexpr std::size_t kGulp = 256U << 10U;

/// Appends one entry in the journal's form: place, channel, size, bytes.
void pack(std::string& packed, std::uint64_t offset, int channel, std::string_view bytes) {
    std::array<unsigned char, kEntryHead> head{};
    agent::putU64(head.data(), offset);
    head[8] = static_cast<unsigned char>(channel);
    agent::putU32(head.data() + 9, static_cast<std::uint32_t>(bytes.size()));
    packed.append(reinterpret_cast<const char*>(head.data()), head.size()).append(bytes);
}

/// The value of a text in a record; Error for an unknown text.
template <typename Enum, std::size_t Count>
Enum known(const Texts<Enum, Count>& texts, const std::string& text) {
    if (const std::optional<Enum> value = texts.find(text)) return *value;
    throw Error(ErrorCode::Internal,
                "the record of this execution says \"" + text + "\", which is unknown");
}

struct Entry {
    std::uint64_t offset = 0;
    int channel = 1;
    std::string_view bytes;

    std::uint64_t end() const { return offset + bytes.size(); }
};

/// Returns the entry at `at` and moves `at` past it; nullopt if the entry is incomplete.
std::optional<Entry> unpack(std::string_view packed, std::size_t& at) {
    if (packed.size() - at < kEntryHead) return std::nullopt;
    const auto* head = reinterpret_cast<const unsigned char*>(packed.data()) + at;
    const std::size_t size = agent::getU32(head + 9);
    if (packed.size() - at - kEntryHead < size) return std::nullopt;
    const Entry entry{agent::getU64(head), head[8], packed.substr(at + kEntryHead, size)};
    at += kEntryHead + size;
    return entry;
}

class Ended : public Execution {
public:
    explicit Ended(ExecutionView view) : view_(std::move(view)) {}

    const std::string& id() const override { return view_.id; }
    bool finished() const override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
    std::shared_ptr<void> subscribe(std::function<void()>) override { return nullptr; }
    ExecutionView viewUpTo(std::uint64_t most) const final {
        ExecutionView view = view_;
        view.withheld = view.kept_bytes + view.result_bytes > most;
        if (view.withheld) return view;
        OutputTexts texts(view);
        for (std::uint64_t at = 0; const std::optional<OutputChunk> chunk = read(at, kGulp);) {
            texts.add(*chunk);
            at = chunk->offset + chunk->bytes.size();
        }
        while (ResultPtr result = resultAt(view.results.size())) {
            view.results.push_back(std::move(result));
        }
        return view;
    }

protected:
    /// Returns the part of an entry at or after `offset`.
    OutputChunk part(const Entry& entry, std::uint64_t offset, std::size_t most) const {
        const std::uint64_t from = std::max(offset, entry.offset);
        return {
            from, entry.channel,
            std::string(entry.bytes.substr(static_cast<std::size_t>(from - entry.offset), most)),
            from > offset ? view_.gap_stderr : 0};
    }

    ExecutionView view_;  ///< without output and results; constant once made
};

/// An execution whose output is in its record, or was not kept.
class SmallExecution final : public Ended {
public:
    SmallExecution(ExecutionView view, const std::string& packed)
        : Ended(std::move(view)), packed_(packed) {
        if (packed.size() == kNoOutput.size()) {
            view_.truncated = true;
            packed_.clear();
        }
        std::size_t at = 0;
        while (const std::optional<Entry> entry = unpack(packed_, at)) {
            if (entry->channel != static_cast<int>(agent::Channel::Results)) {
                view_.kept_bytes += entry->bytes.size();
                view_.output_end = entry->end();
            } else if (ResultPtr result = keptResult(entry->bytes, entry->offset)) {
                view_.result_bytes += result->document.size();
                results_.push_back(std::move(result));
            }
        }
        view_.result_count = results_.size();
    }

    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override {
        std::size_t at = 0;
        while (const std::optional<Entry> entry = unpack(packed_, at)) {
            if (entry->channel != static_cast<int>(agent::Channel::Results) &&
                entry->end() > offset) {
                return part(*entry, offset, most);
            }
        }
        return std::nullopt;
    }
    ResultPtr resultAt(std::size_t index) const override {
        return index < results_.size() ? results_[index] : nullptr;
    }

private:
    std::string packed_;
    std::vector<ResultPtr> results_;
};

/// An execution whose output and results stay in the journal. Holds the piece that was read last.
class LongExecution final : public Ended {
public:
    LongExecution(ExecutionView view, Journal& journal)
        : Ended(std::move(view)), journal_(journal) {}

    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override {
        const MutexLock lock(mutex_);
        if (begin_ <= offset) {
            if (std::optional<OutputChunk> found = inPiece(offset, most)) return found;
        }
        if (load(journal_.outputAt(view_.id, offset, view_.tenant))) {
            if (std::optional<OutputChunk> found = inPiece(offset, most)) return found;
        }
        // In a gap: reads the piece after it.
        if (!load(journal_.outputBehind(view_.id, offset, view_.tenant))) return std::nullopt;
        return inPiece(offset, most);
    }
    ResultPtr resultAt(std::size_t index) const override {
        const std::optional<std::string> packed = journal_.resultOf(view_.id, index, view_.tenant);
        std::size_t at = 0;
        const std::optional<Entry> entry = packed ? unpack(*packed, at) : std::nullopt;
        return entry ? keptResult(entry->bytes, entry->offset) : nullptr;
    }
    bool readsDisk() const override { return true; }

private:
    bool load(std::optional<std::string> piece) const HEARTH_REQUIRES(mutex_) {
        piece_ = piece ? *std::move(piece) : std::string();
        std::size_t at = 0;
        const std::optional<Entry> first = unpack(piece_, at);
        begin_ = last_offset_ = first ? first->offset : UINT64_MAX;
        last_ = 0;
        return first.has_value();
    }
    /// Continues at the entry found last: readers ask in order.
    std::optional<OutputChunk> inPiece(std::uint64_t offset, std::size_t most) const
        HEARTH_REQUIRES(mutex_) {
        std::size_t at = offset >= last_offset_ ? last_ : 0;
        for (std::size_t entry_at = at; const std::optional<Entry> entry = unpack(piece_, at);
             entry_at = at) {
            if (entry->end() <= offset) continue;
            last_ = entry_at;
            last_offset_ = entry->offset;
            return part(*entry, offset, most);
        }
        return std::nullopt;
    }

    Journal& journal_;
    mutable Mutex mutex_;
    mutable std::string piece_ HEARTH_GUARDED_BY(mutex_);
    /// The offset of the first entry in piece_.
    mutable std::uint64_t begin_ HEARTH_GUARDED_BY(mutex_) = UINT64_MAX;
    /// The position in piece_ of the entry found last.
    mutable std::size_t last_ HEARTH_GUARDED_BY(mutex_) = 0;
    mutable std::uint64_t last_offset_ HEARTH_GUARDED_BY(mutex_) = UINT64_MAX;  ///< its offset
};

}  // namespace

bool keepsApart(const ExecutionView& view) {
    return view.kept_bytes + view.result_bytes > kInRecord;
}

std::string packedOutput(const Execution& execution) {
    std::string packed;
    for (std::uint64_t at = 0;
         const std::optional<OutputChunk> chunk = execution.read(at, kGulp);) {
        pack(packed, chunk->offset, chunk->channel, chunk->bytes);
        at = chunk->offset + chunk->bytes.size();
    }
    for (std::size_t i = 0; const ResultPtr result = execution.resultAt(i); ++i) {
        pack(packed, result->behind, static_cast<int>(agent::Channel::Results), result->document);
    }
    return packed;
}

void putApart(const Execution& execution, const Journal::PutPiece& put) {
    std::string packed;
    std::uint64_t begin = 0;
    for (std::uint64_t at = 0;
         const std::optional<OutputChunk> chunk = execution.read(at, kPiece);) {
        if (packed.empty()) begin = chunk->offset;
        pack(packed, chunk->offset, chunk->channel, chunk->bytes);
        at = chunk->offset + chunk->bytes.size();
        if (packed.size() < kPiece) continue;
        put(Journal::Piece::Output, begin, packed);
        packed.clear();
    }
    if (!packed.empty()) put(Journal::Piece::Output, begin, packed);
    for (std::size_t i = 0; const ResultPtr result = execution.resultAt(i); ++i) {
        packed.clear();
        pack(packed, result->behind, static_cast<int>(agent::Channel::Results), result->document);
        put(Journal::Piece::Result, i, packed);
    }
}

std::string executionDocument(const ExecutionView& view) {
    Json out = {{"id", view.id},
                {"workspace", view.workspace_id},
                {"tenant", view.tenant},
                {"pool", view.pool},
                {"language", view.language},
                {"status", kExecutionStatuses.of(view.status)},
                {"dropped", view.dropped_bytes},
                {"startedAt", view.started_at},
                {"cpuMs", view.cpu_ms},
                {"peakMemory", view.peak_memory_bytes},
                {"interpreter", view.interpreter},
                {"background", view.background}};
    if (view.gap_stderr > 0) out["gapStderr"] = view.gap_stderr;
    if (view.dropped_results > 0) out["droppedResults"] = view.dropped_results;
    if (view.context) out["context"] = *view.context;
    if (view.context_kept) out["contextKept"] = *view.context_kept;
    if (view.exit_code) out["exitCode"] = *view.exit_code;
    if (view.signal) out["signal"] = *view.signal;
    if (view.duration_ms) out["durationMs"] = *view.duration_ms;
    if (view.start_ms) out["startMs"] = *view.start_ms;
    if (view.first_output_ms) out["firstOutputMs"] = *view.first_output_ms;
    if (!view.trace_id.empty()) out["trace"] = view.trace_id;
    if (view.error) out["error"] = *view.error;
    if (view.packages) {
        out["packages"] = {{"installed", view.packages->installed},
                           {"notInstalled", view.packages->not_installed},
                           {"done", view.packages->done},
                           {"durationMs", view.packages->duration_ms}};
    }
    for (const Artifact& artifact : view.artifacts) {
        out["artifacts"].push_back(
            {{"path", toUtf8(artifact.path)},
             {"size", artifact.size},
             {"mime", artifact.mime},
             {"sha256", artifact.sha256},
             {"url", artifact.url},
             {"expires", artifact.expires_ms},
             {"reason", artifact.not_kept ? kNotKept.of(*artifact.not_kept) : ""}});
    }
    if (view.artifacts_truncated) out["artifactsTruncated"] = true;
    if (view.claim) out["claim"] = ledgerJson(*view.claim);
    if (keepsApart(view)) {
        out["apart"] = {{"kept", view.kept_bytes},
                        {"end", view.output_end},
                        {"results", view.result_count},
                        {"resultBytes", view.result_bytes}};
    }
    return dumpJson(out);
}

std::shared_ptr<Execution> storedExecution(const ExecutionRecord& record, Journal& journal,
                                           const ArtifactStore* store) {
    const Json in = parseJson(record.document);
    ExecutionView view;
    view.id = in.at("id").get<std::string>();
    view.workspace_id = in.at("workspace").get<std::string>();
    view.tenant = in.at("tenant").get<std::string>();
    view.pool = in.at("pool").get<std::string>();
    view.language = in.at("language").get<std::string>();
    view.status = known(kExecutionStatuses, in.at("status"));
    view.dropped_bytes = in.at("dropped").get<std::uint64_t>();
    view.truncated = view.dropped_bytes > 0;
    view.started_at = in.at("startedAt").get<std::string>();
    view.cpu_ms = in.at("cpuMs").get<std::uint64_t>();
    view.peak_memory_bytes = in.at("peakMemory").get<std::uint64_t>();
    view.interpreter = in.at("interpreter").get<std::string>();
    view.background = in.at("background").get<bool>();
    view.gap_stderr = in.value("gapStderr", std::uint64_t{0});
    view.dropped_results = in.value("droppedResults", std::uint64_t{0});
    if (in.contains("context")) view.context = in["context"].get<std::string>();
    if (in.contains("contextKept")) view.context_kept = in["contextKept"].get<bool>();
    if (in.contains("exitCode")) view.exit_code = in["exitCode"].get<int>();
    if (in.contains("signal")) view.signal = in["signal"].get<std::string>();
    if (in.contains("durationMs")) view.duration_ms = in["durationMs"].get<double>();
    if (in.contains("startMs")) view.start_ms = in["startMs"].get<double>();
    if (in.contains("firstOutputMs")) view.first_output_ms = in["firstOutputMs"].get<double>();
    view.trace_id = in.value("trace", "");
    if (in.contains("error")) view.error = in["error"];
    if (const auto told = in.find("packages"); told != in.end()) {
        RunPackages& packages = view.packages.emplace();
        told->at("installed").get_to(packages.installed);
        told->at("notInstalled").get_to(packages.not_installed);
        packages.done = told->at("done").get<bool>();
        packages.duration_ms = told->at("durationMs").get<std::uint64_t>();
    }
    for (const Json& artifact : in.value("artifacts", Json::array())) {
        view.artifacts.push_back({artifact.at("path").get<std::string>(),
                                  artifact.at("size").get<std::uint64_t>(),
                                  artifact.at("mime").get<std::string>(),
                                  artifact.at("sha256").get<std::string>(),
                                  artifact.at("url").get<std::string>(),
                                  artifact.at("expires").get<std::int64_t>(),
                                  {}});
        const std::string reason = artifact.at("reason").get<std::string>();
        if (!reason.empty()) view.artifacts.back().not_kept = known(kNotKept, reason);
    }
    view.artifacts_truncated = in.value("artifactsTruncated", false);
    for (std::size_t i = 0; store != nullptr && i < view.artifacts.size(); ++i) {
        Artifact& artifact = view.artifacts[i];
        if (artifact.url.empty()) continue;
        if (store->has({view.tenant, view.workspace_id, view.id + "-" + std::to_string(i)}))
            continue;
        artifact.url.clear();
        artifact.expires_ms = 0;
        artifact.not_kept = NotKept::Gone;
    }
    if (in.contains("claim")) view.claim = ledgerFrom(in["claim"]);
    const auto apart = in.find("apart");
    if (apart == in.end() || record.output != kOutputApart) {
        return std::make_shared<SmallExecution>(std::move(view), record.output);
    }
    view.kept_bytes = apart->at("kept").get<std::uint64_t>();
    view.output_end = apart->at("end").get<std::uint64_t>();
    view.result_count = apart->at("results").get<std::size_t>();
    view.result_bytes = apart->at("resultBytes").get<std::uint64_t>();
    return std::make_shared<LongExecution>(std::move(view), journal);
}

}  // namespace hearth::controller
