#include "controller/LiveExecution.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "base/Error.h"
#include "controller/AgentErrors.h"
#include "controller/ArtifactStore.h"
#include "controller/Journal.h"

namespace hearth::controller {
namespace {

/// What a shell ends with after a child that was killed.
constexpr int kShellKilled = 128 + SIGKILL;
/// A process with a smaller part of its sandbox's memory is hardly the one that is killed for it.
constexpr std::uint64_t kMuchMemory = 4;
/// Patterns that an agent may tell, and their length; more than a request may have.
constexpr std::size_t kMostPatterns = 64;
constexpr std::size_t kMostPattern = 4096;

std::string signalName(int number) {
    const char* name = ::sigabbrev_np(number);
    return name == nullptr ? std::to_string(number) : name;
}

/// What the language's runner left: untrusted, so only three short texts are taken over.
std::optional<Json> readReport(const std::string& text) {
    if (text.empty()) return std::nullopt;
    try {
        const Json report = parseJson(text, {.bytes = 65'536, .depth = 4, .values = 100});
        if (!report.is_object() || !report.contains("name")) return std::nullopt;
        Json error = Json::object();
        for (const char* key : {"name", "message", "traceback"}) {
            const auto found = report.find(key);
            error[key] =
                found != report.end() && found->is_string() ? found->get<std::string>() : "";
        }
        return error;
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// The wish for artifacts in a note that an agent gave back; none if it is not as it was given.
std::vector<std::string> patternsIn(const Json& note) {
    const auto found = note.find("collect");
    if (found == note.end() || !found->is_array() || found->size() > kMostPatterns) return {};
    std::vector<std::string> patterns;
    for (const Json& each : *found) {
        if (!each.is_string() || each.get_ref<const std::string&>().size() > kMostPattern) {
            return {};
        }
        patterns.push_back(each.get<std::string>());
    }
    return patterns;
}

/// One entry of the journal's form: place, channel, size, bytes.
void pack(std::string& packed, std::uint64_t offset, agent::Channel channel,
          std::string_view bytes) {
    std::array<unsigned char, 13> head{};
    agent::putU64(head.data(), offset);
    head[8] = static_cast<unsigned char>(channel);
    agent::putU32(head.data() + 9, static_cast<std::uint32_t>(bytes.size()));
    packed.append(reinterpret_cast<const char*>(head.data()), head.size()).append(bytes);
}

}  // namespace

LiveExecution::LiveExecution(Facts facts, std::shared_ptr<Workspace> workspace, const Clock& clock)
    : facts_(std::move(facts)),
      workspace_(std::move(workspace)),
      clock_(clock),
      log_(facts_.output_limit),
      context_(facts_.context),
      started_(clock.now()),
      patterns_(facts_.collect) {}

Json LiveExecution::note() const {
    const std::vector<std::string> wanted = patterns();
    return wanted.empty() ? Json::object() : Json{{"collect", wanted}};
}

std::vector<std::string> LiveExecution::patterns() const {
    const std::lock_guard lock(mutex_);
    return patterns_;
}

void LiveExecution::handle(std::shared_ptr<agent::ExecHandle> handle) {
    const std::lock_guard lock(mutex_);
    handle_ = std::move(handle);
}

std::shared_ptr<agent::ExecHandle> LiveExecution::handle() const {
    const std::lock_guard lock(mutex_);
    return handle_;
}

bool LiveExecution::mayHaveMetOom(std::uint64_t memory_bytes) const {
    const std::lock_guard lock(mutex_);
    if (!has_result_) return false;
    return result_.signal == SIGKILL || result_.exit_code == kShellKilled ||
           result_.max_rss_bytes >= memory_bytes / kMuchMemory;
}

void LiveExecution::oomSeen() {
    const std::lock_guard lock(mutex_);
    if (status_ == "killed" && result_.signal == SIGKILL) status_ = "oom";
}

void LiveExecution::endLost() {
    finish("lost");
}

double LiveExecution::runSeconds() const {
    const std::lock_guard lock(mutex_);
    return has_result_ ? toSeconds(result_.ended_at - result_.started_at) : 0;
}

double LiveExecution::overheadSeconds() const {
    const std::lock_guard lock(mutex_);
    if (!has_result_) return 0;
    return std::max(
        0.0, toSeconds(clock_.now() - facts_.requested - (result_.ended_at - result_.started_at)));
}

WallTime LiveExecution::wallOf(TimePoint at) const {
    return clock_.wall() - std::chrono::duration_cast<WallTime::duration>(clock_.now() - at);
}

ExecutionView LiveExecution::view() const {
    ExecutionView view;
    view.id = facts_.id;
    view.workspace_id = workspace_->facts().id;
    view.tenant = workspace_->facts().tenant;
    view.pool = workspace_->facts().pool;
    view.language = facts_.language;
    view.background = facts_.background;
    view.claim = facts_.claim;
    const std::lock_guard lock(mutex_);
    // Until the callback has seen the end, the end is not told: its status may still become "oom".
    view.status = finished_ ? status_ : "running";
    view.started_at = formatRfc3339(wallOf(started_));
    for (std::uint64_t at = 0;;) {
        const agent::OutputLog::Chunk chunk = log_.read(at, SIZE_MAX);
        if (chunk.bytes.empty()) break;
        (chunk.channel == agent::Channel::Stderr ? view.stderr_bytes : view.stdout_bytes)
            .append(chunk.bytes);
        at = chunk.offset + chunk.bytes.size();
    }
    view.dropped_bytes = log_.dropped();
    view.results = results_;
    view.dropped_results = bad_results_;
    view.interpreter = interpreter_;
    if (!context_.empty()) view.context = context_;
    if (finished_ && has_result_) {
        if (result_.signal == 0) {
            view.exit_code = result_.exit_code;
        } else {
            view.signal = signalName(result_.signal);
        }
        view.duration_ms = toMillis(result_.ended_at - result_.started_at);
        view.cpu_ms = result_.cpu_ms;
        view.peak_memory_bytes = result_.max_rss_bytes;
        view.dropped_bytes = std::max(view.dropped_bytes, result_.dropped_bytes);
        view.dropped_results += result_.dropped_results;
        if (view.context) view.context_kept = result_.context_kept;
        view.error = readReport(result_.report);
        view.artifacts = artifacts_.items;
        view.artifacts_truncated = artifacts_.truncated;
    }
    view.truncated = view.dropped_bytes > 0;
    if (refusal_) {
        view.error =
            Json{{"name", refusal_->code()}, {"message", refusal_->what()}, {"traceback", ""}};
    }
    return view;
}

bool LiveExecution::finished() const {
    const std::lock_guard lock(mutex_);
    return finished_;
}

bool LiveExecution::wait(std::chrono::milliseconds timeout) {
    if (finished()) return true;
    try {
        workspace_->agent().drive(
            [this] {
                const std::lock_guard lock(mutex_);
                return finished_ || collecting_;
            },
            timeout);
    } catch (const agent::AgentLost&) {
        // lost() has been called, or endLost() will be.
    }
    {  // Artifacts come from another thread than the agent's frames.
        std::unique_lock lock(mutex_);
        if (collecting_) concluded_.wait_for(lock, timeout, [this] { return finished_; });
    }
    const bool done = finished();
    if (const std::optional<agent::AgentError> refused = refusal()) {
        const std::string code = refused->code();
        const bool about_context = !context().empty() && (code == "NOT_FOUND" || code == "BUSY");
        throw about_context ? contextError(*refused, "") : clientError(*refused);
    }
    return done;
}

std::string LiveExecution::context() const {
    const std::lock_guard lock(mutex_);
    return context_;
}

bool LiveExecution::tookContext() const {
    const std::lock_guard lock(mutex_);
    if (context_.empty()) return false;
    if (refusal_) return refusal_->code() == "NOT_FOUND";
    return has_result_ && result_.context_kept == false;
}

ResultPtr LiveExecution::resultAt(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return index < results_.size() ? results_[index] : nullptr;
}

std::optional<OutputChunk> LiveExecution::read(std::uint64_t offset, std::size_t most) const {
    const std::lock_guard lock(mutex_);
    const agent::OutputLog::Chunk chunk = log_.read(offset, most);
    if (chunk.bytes.empty()) return std::nullopt;
    return OutputChunk{chunk.offset, static_cast<int>(chunk.channel), std::string(chunk.bytes)};
}

std::shared_ptr<void> LiveExecution::subscribe(std::function<void()> changed) {
    return subscribers_.add(std::move(changed));
}

std::string LiveExecution::packedOutput() const {
    std::string packed;
    const std::lock_guard lock(mutex_);
    for (std::uint64_t at = 0;;) {
        const agent::OutputLog::Chunk chunk = log_.read(at, SIZE_MAX);
        if (chunk.bytes.empty()) break;
        pack(packed, chunk.offset, chunk.channel, chunk.bytes);
        at = chunk.offset + chunk.bytes.size();
    }
    for (const ResultPtr& each : results_) {
        pack(packed, each->behind, agent::Channel::Results, each->document);
    }
    return packed;
}

void LiveExecution::started(const agent::ExecStart& start) {
    const std::lock_guard lock(mutex_);
    // Not later than now: the agent's word is not trusted with the clock.
    started_ = std::min(start.at, clock_.now());
    interpreter_ = start.interpreter;
    if (patterns_.empty()) patterns_ = patternsIn(start.note);
    if (facts_.context.empty() && workspace_->contexts().find(start.context)) {
        context_ = start.context;  // found again after a restart of the server
        if (!facts_.had_ended) workspace_->contexts().begin(context_, facts_.id);
    }
}

void LiveExecution::result(std::string_view json) {
    std::uint64_t behind = 0;
    {
        const std::lock_guard lock(mutex_);
        behind = log_.total();
    }
    ResultPtr read = readResult(json, behind);
    {
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        if (read && result_values_ + read->values <= kMostResultValues) {
            result_values_ += read->values;
            results_.push_back(std::move(read));
        } else {
            ++bad_results_;
        }
    }
    subscribers_.notify();
}

void LiveExecution::output(int channel, std::uint64_t offset, std::string_view bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (finished_ || offset < log_.total()) return;
        log_.skipTo(offset);
        log_.append(channel == 2 ? agent::Channel::Stderr : agent::Channel::Stdout, bytes);
    }
    subscribers_.notify();
}

void LiveExecution::exited(const agent::ExecResult& result) {
    {
        const std::lock_guard lock(mutex_);
        if (finished_ || has_result_) return;
        result_ = result;
        has_result_ = true;
        if (!result.interpreter.empty()) interpreter_ = result.interpreter;
        started_ = std::min(result.started_at, clock_.now());
    }
    finish(result.status);
}

void LiveExecution::lost(const std::optional<agent::AgentError>& error) {
    {
        const std::lock_guard lock(mutex_);
        refusal_ = error;
    }
    if (error) {
        finish("failed");  // the agent refused to run it
    } else {
        finish(workspace_->active() ? "lost" : "killed");
    }
}

std::optional<agent::AgentError> LiveExecution::refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_;
}

void LiveExecution::finish(const std::string& status) {
    bool collect = false;
    {
        const std::lock_guard lock(mutex_);
        if (status_ != "running") return;
        status_ = status;
        collecting_ = has_result_ && collect_ && !patterns_.empty();
        collect = collecting_;
    }
    const std::shared_ptr<LiveExecution> keep = self_.lock();
    if (collect && keep) return collect_(keep);
    conclude();
}

void LiveExecution::collected(CollectedArtifacts artifacts) {
    {
        const std::lock_guard lock(mutex_);
        artifacts_ = std::move(artifacts);
    }
    conclude();
}

void LiveExecution::conclude() {
    const std::shared_ptr<LiveExecution> keep = self_.lock();
    if (ended_ && keep) ended_(keep);
    {
        const std::lock_guard lock(mutex_);
        finished_ = true;
        handle_.reset();
    }
    concluded_.notify_all();
    subscribers_.notify();
}

namespace {

/// Reads the form that packedOutput() writes.
class StoredExecution final : public Execution {
public:
    StoredExecution(ExecutionView view, const std::string& packed) : view_(std::move(view)) {
        if (packed == kNoOutput) view_.truncated = true;
        std::size_t at = 0;
        while (packed.size() - at >= 13) {
            const auto* head = reinterpret_cast<const unsigned char*>(packed.data()) + at;
            OutputChunk chunk;
            chunk.offset = agent::getU64(head);
            chunk.channel = head[8];
            const std::size_t size = agent::getU32(head + 9);
            at += 13;
            if (packed.size() - at < size) break;
            chunk.bytes = packed.substr(at, size);
            at += size;
            if (chunk.channel == static_cast<int>(agent::Channel::Results)) {
                ResultPtr result = readResult(chunk.bytes, chunk.offset);
                if (result) view_.results.push_back(std::move(result));
                continue;
            }
            (chunk.channel == 2 ? view_.stderr_bytes : view_.stdout_bytes).append(chunk.bytes);
            chunks_.push_back(std::move(chunk));
        }
    }

    const std::string& id() const override { return view_.id; }
    ExecutionView view() const override { return view_; }
    bool finished() const override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override {
        for (const OutputChunk& chunk : chunks_) {
            if (chunk.offset + chunk.bytes.size() <= offset) continue;
            OutputChunk part = chunk;
            if (offset > chunk.offset) {
                part.bytes.erase(0, static_cast<std::size_t>(offset - chunk.offset));
                part.offset = offset;
            }
            if (part.bytes.size() > most) part.bytes.resize(most);
            return part;
        }
        return std::nullopt;
    }
    ResultPtr resultAt(std::size_t index) const override {
        return index < view_.results.size() ? view_.results[index] : nullptr;
    }
    std::shared_ptr<void> subscribe(std::function<void()>) override { return nullptr; }

private:
    ExecutionView view_;
    std::vector<OutputChunk> chunks_;
};

}  // namespace

std::string executionDocument(const ExecutionView& view) {
    Json out = {{"id", view.id},
                {"workspace", view.workspace_id},
                {"tenant", view.tenant},
                {"pool", view.pool},
                {"language", view.language},
                {"status", view.status},
                {"dropped", view.dropped_bytes},
                {"startedAt", view.started_at},
                {"cpuMs", view.cpu_ms},
                {"peakMemory", view.peak_memory_bytes},
                {"interpreter", view.interpreter},
                {"background", view.background}};
    if (view.dropped_results > 0) out["droppedResults"] = view.dropped_results;
    if (view.context) out["context"] = *view.context;
    if (view.context_kept) out["contextKept"] = *view.context_kept;
    if (view.exit_code) out["exitCode"] = *view.exit_code;
    if (view.signal) out["signal"] = *view.signal;
    if (view.duration_ms) out["durationMs"] = *view.duration_ms;
    if (view.error) out["error"] = *view.error;
    for (const Artifact& artifact : view.artifacts) {
        out["artifacts"].push_back({{"path", toUtf8(artifact.path)},
                                    {"size", artifact.size},
                                    {"mime", artifact.mime},
                                    {"sha256", artifact.sha256},
                                    {"url", artifact.url},
                                    {"expires", artifact.expires_ms},
                                    {"reason", artifact.reason}});
    }
    if (view.artifacts_truncated) out["artifactsTruncated"] = true;
    if (view.claim) {
        out["claim"] = ledgerJson(*view.claim);
    }
    return dumpJson(out);
}

std::shared_ptr<Execution> storedExecution(const std::string& document, const std::string& output,
                                           const ArtifactStore* store) {
    const Json in = parseJson(document);
    ExecutionView view;
    view.id = in.at("id").get<std::string>();
    view.workspace_id = in.at("workspace").get<std::string>();
    view.tenant = in.at("tenant").get<std::string>();
    view.pool = in.at("pool").get<std::string>();
    view.language = in.at("language").get<std::string>();
    view.status = in.at("status").get<std::string>();
    view.dropped_bytes = in.at("dropped").get<std::uint64_t>();
    view.truncated = view.dropped_bytes > 0;
    view.started_at = in.at("startedAt").get<std::string>();
    view.cpu_ms = in.at("cpuMs").get<std::uint64_t>();
    view.peak_memory_bytes = in.at("peakMemory").get<std::uint64_t>();
    view.interpreter = in.at("interpreter").get<std::string>();
    view.background = in.at("background").get<bool>();
    view.dropped_results = in.value("droppedResults", std::uint64_t{0});
    if (in.contains("context")) view.context = in["context"].get<std::string>();
    if (in.contains("contextKept")) view.context_kept = in["contextKept"].get<bool>();
    if (in.contains("exitCode")) view.exit_code = in["exitCode"].get<int>();
    if (in.contains("signal")) view.signal = in["signal"].get<std::string>();
    if (in.contains("durationMs")) view.duration_ms = in["durationMs"].get<double>();
    if (in.contains("error")) view.error = in["error"];
    for (const Json& artifact : in.value("artifacts", Json::array())) {
        view.artifacts.push_back(
            {artifact.at("path").get<std::string>(), artifact.at("size").get<std::uint64_t>(),
             artifact.at("mime").get<std::string>(), artifact.at("sha256").get<std::string>(),
             artifact.at("url").get<std::string>(), artifact.at("expires").get<std::int64_t>(),
             artifact.at("reason").get<std::string>()});
    }
    view.artifacts_truncated = in.value("artifactsTruncated", false);
    for (std::size_t i = 0; store != nullptr && i < view.artifacts.size(); ++i) {
        Artifact& artifact = view.artifacts[i];
        if (artifact.url.empty()) continue;
        if (store->has({view.tenant, view.workspace_id, view.id + "-" + std::to_string(i)}))
            continue;
        artifact.url.clear();
        artifact.expires_ms = 0;
        artifact.reason = "gone";
    }
    if (in.contains("claim")) {
        view.claim = ledgerFrom(in["claim"]);
    }
    return std::make_shared<StoredExecution>(std::move(view), output);
}

}  // namespace hearth::controller
