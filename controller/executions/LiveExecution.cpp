#include "controller/executions/LiveExecution.h"

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/Error.h"
#include "controller/contract/ChannelText.h"
#include "controller/contract/RawMembers.h"
#include "controller/executions/Attendance.h"
#include "controller/executions/ExecutionPackages.h"
#include "controller/workspaces/AgentErrors.h"
#include "pool/agent/protocol/OutputCut.h"

namespace hearth::controller {
namespace {

/// How often a waiting thread checks for the execution's next connection.
constexpr auto kRejoinLook = std::chrono::milliseconds(50);
/// A shell's exit status after a child that was killed.
constexpr int kShellKilled = 128 + SIGKILL;
/// A process with a smaller part of its sandbox's memory is hardly the one killed for memory.
constexpr std::uint64_t kMuchMemory = 4;
/// The most patterns an agent may report, and their longest length; more than a request may have.
constexpr std::size_t kMostPatterns = 64;
constexpr std::size_t kMostPattern = 4096;

std::string signalName(int number) {
    const char* name = ::sigabbrev_np(number);
    return name == nullptr ? std::to_string(number) : name;
}

/// Reads the report of the language's runner: untrusted, so only three short texts are taken. A
/// report that cannot be read is still one of an error.
std::optional<Json> readReport(const std::string& text) {
    if (text.empty()) return std::nullopt;
    Json error{{"name", "Error"}, {"message", ""}, {"traceback", ""}};
    const auto members = rawMembers(text, 16);
    if (!members) error["message"] = "its report cannot be read";
    for (const RawMember& member : members.value_or(std::vector<RawMember>())) {
        const ForeignValue value = foreignValue(member.value, {.bytes = 2 * text.size()});
        if (error.contains(member.key) && value.json && value.json->is_string())
            error[member.key] = *value.json;
    }
    return error;
}

/// Returns the wish for artifacts in a note that an agent gave back; none if the note is changed.
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

}  // namespace

LiveExecution::LiveExecution(Facts facts, std::shared_ptr<Workspace> workspace, const Clock& clock,
                             Reports reports, LiveResults::Count count, QuotaLedger::Hold quota)
    : facts_(std::move(facts)),
      workspace_(std::move(workspace)),
      clock_(clock),
      reports_(std::move(reports)),
      results_(std::move(count)),
      log_(facts_.output_limit),
      context_(facts_.context),
      started_(clock.now()),
      started_at_(clock.wall()),
      patterns_(facts_.collect),
      quota_(std::move(quota)),
      paced_(facts_.paced) {
    results_read_->set();
}

Json LiveExecution::note() const {
    Json note = Json::object();
    if (const std::vector<std::string> wanted = patterns(); !wanted.empty())
        note["collect"] = wanted;
    if (facts_.paced) note["paced"] = true;
    return note;
}

std::vector<std::string> LiveExecution::patterns() const {
    const MutexLock lock(mutex_);
    return patterns_;
}

void LiveExecution::handle(std::shared_ptr<agent::ExecHandle> handle) {
    const MutexLock lock(mutex_);
    handle_ = std::move(handle);
}

std::shared_ptr<agent::ExecHandle> LiveExecution::handle() const {
    const MutexLock lock(mutex_);
    return handle_;
}

bool LiveExecution::mayHaveMetOom(std::uint64_t memory_bytes) const {
    const MutexLock lock(mutex_);
    if (!has_result_) return status_ == ExecutionStatus::Lost;
    return result_.signal == SIGKILL || result_.exit_code == kShellKilled ||
           result_.max_rss_bytes >= memory_bytes / kMuchMemory;
}

void LiveExecution::oomSeen() {
    const MutexLock lock(mutex_);
    const bool killed = status_ == ExecutionStatus::Killed && result_.signal == SIGKILL;
    if (killed || (status_ == ExecutionStatus::Lost && !has_result_))
        status_ = ExecutionStatus::Oom;
}

bool LiveExecution::hasEnded() const {
    const MutexLock lock(mutex_);
    return status_ != ExecutionStatus::Running;
}

bool LiveExecution::agentLost() const {
    const MutexLock lock(mutex_);
    return status_ == ExecutionStatus::Lost && !has_result_;
}

void LiveExecution::endLost() {
    finish(ExecutionStatus::Lost);
}

double LiveExecution::runSeconds() const {
    const MutexLock lock(mutex_);
    return has_result_ ? toSeconds(result_.ended_at - result_.started_at) : 0;
}

double LiveExecution::overheadSeconds() const {
    const MutexLock lock(mutex_);
    if (!has_result_) return 0;
    return std::max(
        0.0, toSeconds(clock_.now() - facts_.requested - (result_.ended_at - result_.started_at)));
}

LiveExecution::Times LiveExecution::times() const {
    const MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    if (!has_result_) return {TimePoint(), first_output_, now};
    return {started_, firstOutput(), std::min(result_.ended_at, now)};
}

TimePoint LiveExecution::firstOutput() const {
    // Output is read here, perhaps after the agent saw the program end.
    return has_result_ ? std::min(first_output_, result_.ended_at) : first_output_;
}

/// The wall time is computed once: lists are in its order, so no two answers may differ.
void LiveExecution::startsAt(TimePoint at) {
    // Not later than now: the agent's time is not trusted.
    const TimePoint now = clock_.now();
    at = std::min(at, now);
    if (at == started_) return;
    started_ = at;
    started_at_ = clock_.wall() - std::chrono::duration_cast<WallTime::duration>(now - at);
}

std::string LiveExecution::startedAt() const {
    const MutexLock lock(mutex_);
    return formatRfc3339(started_at_);
}

ExecutionView LiveExecution::viewUpTo(std::uint64_t most) const {
    ExecutionView view;
    view.id = facts_.id;
    view.workspace_id = workspace_->facts().id;
    view.tenant = workspace_->facts().tenant;
    view.pool = workspace_->facts().pool;
    view.language = facts_.language;
    view.background = facts_.background;
    view.claim = facts_.claim;
    view.trace_id = facts_.trace.trace_id;
    UniqueMutexLock lock(mutex_);
    if (const std::shared_ptr<Execution> kept = stored_) {
        lock.unlock();
        return kept->viewUpTo(most);
    }
    // The end is not reported before the callback has seen it: its status may still become "oom".
    view.status = finished_ ? status_ : ExecutionStatus::Running;
    view.interpreter = interpreter_;
    if (!context_.empty()) view.context = context_;
    showOutput(view, most);
    showTimes(view);
    if (finished_ && has_result_) showEnd(view);
    view.truncated = view.dropped_bytes > 0;
    if (refusal_) {
        view.error =
            Json{{"name", refusal_->code()}, {"message", refusal_->what()}, {"traceback", ""}};
    }
    return view;
}

void LiveExecution::showOutput(ExecutionView& view, std::uint64_t most) const {
    view.output_end = results_.showable(log_.total());
    view.dropped_bytes = agent::OutputCut(log_).dropped(view.output_end);
    view.gap_stderr = agent::OutputCut(log_).droppedStderr();
    view.kept_bytes = view.output_end - view.dropped_bytes;
    view.results = results_.all();
    view.result_count = view.results.size();
    view.result_bytes = results_.bytes();
    view.withheld = view.kept_bytes + view.result_bytes > most;
    OutputTexts texts(view);
    for (std::uint64_t at = 0; !view.withheld;) {
        const auto chunk = outputUpTo(view.output_end, at, SIZE_MAX);
        if (!chunk) break;
        texts.add(*chunk);
        at = chunk->offset + chunk->bytes.size();
    }
    if (view.withheld) view.results = {};
    view.dropped_results = results_.dropped();
}

void LiveExecution::showTimes(ExecutionView& view) const {
    const auto after_request = [&](TimePoint at) {
        const bool known = !facts_.adopted && at >= facts_.requested && at != TimePoint();
        return known ? std::optional(toMillis(at - facts_.requested)) : std::nullopt;
    };
    view.started_at = formatRfc3339(started_at_);
    if (begun_) view.start_ms = after_request(started_);
    if (!finished_) view.elapsed_ms = toMillis(clock_.now() - facts_.requested);
    view.first_output_ms = after_request(firstOutput());
}

void LiveExecution::showEnd(ExecutionView& view) const {
    if (result_.signal == 0) {
        view.exit_code = result_.exit_code;
    } else {
        view.signal = signalName(result_.signal);
    }
    view.duration_ms = toMillis(result_.ended_at - result_.started_at);
    view.cpu_ms = result_.cpu_ms;
    view.peak_memory_bytes = result_.max_rss_bytes;
    // These bytes came before it in its context and have no place in its own output.
    const std::uint64_t lost = result_.output_bytes - std::min(result_.output_bytes, log_.total());
    view.dropped_bytes =
        lost +
        std::max(view.dropped_bytes, result_.dropped_bytes - std::min(result_.dropped_bytes, lost));
    view.dropped_results += result_.dropped_results;
    if (view.context) view.context_kept = result_.context_kept;
    view.error = readReport(result_.report);
    view.packages = packages_;
    if (const auto why = packages_ ? packageError(*packages_, status_) : std::nullopt) {
        view.error = why;
        view.exit_code.reset();  // it belongs to no program of the tenant
    }
    view.artifacts = artifacts_.items;
    view.artifacts_truncated = artifacts_.truncated;
}

bool LiveExecution::finished() const {
    const MutexLock lock(mutex_);
    return finished_;
}

bool LiveExecution::unanswered() const {
    return facts_.ends_by != TimePoint{} && clock_.now() >= facts_.ends_by + kEndGrace &&
           !hasEnded() && workspace_->silentSince();
}

bool LiveExecution::wait(std::chrono::milliseconds timeout) {
    if (finished()) return true;
    std::optional<Attendance> attendance;
    if (!workspace_->facts().count_running_work) attendance.emplace(workspace_, clock_);
    using Steady = std::chrono::steady_clock;
    const auto until = Steady::now() + timeout;
    const auto over = [this] { return hasEnded(); };
    while (!over() && Steady::now() < until) {
        try {
            workspace_->agent()->drive(
                over, std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()));
        } catch (const agent::AgentLost&) {
            // It continues with the next connection, or giveUp() will be called.
            const MutexLock lock(mutex_);
            concluded_.waitUntil(
                mutex_, std::min(until, Steady::now() + kRejoinLook),
                [this]() HEARTH_REQUIRES(mutex_) { return status_ != ExecutionStatus::Running; });
        }
    }
    {  // The rest of the end may come from another thread than the agent's frames.
        const MutexLock lock(mutex_);
        if (status_ != ExecutionStatus::Running)
            concluded_.waitUntil(mutex_, until,
                                 [this]() HEARTH_REQUIRES(mutex_) { return finished_; });
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
    const MutexLock lock(mutex_);
    return context_;
}

bool LiveExecution::tookContext() const {
    const MutexLock lock(mutex_);
    if (context_.empty()) return false;
    if (refusal_) return refusal_->code() == "NOT_FOUND";
    return has_result_ && result_.context_kept == false;
}

ResultPtr LiveExecution::resultAt(std::size_t index) const {
    UniqueMutexLock lock(mutex_);
    if (const std::shared_ptr<Execution> kept = stored_) {
        lock.unlock();
        return kept->resultAt(index);
    }
    return results_.at(index);
}

std::optional<OutputChunk> LiveExecution::read(std::uint64_t offset, std::size_t most) const {
    UniqueMutexLock lock(mutex_);
    if (const std::shared_ptr<Execution> kept = stored_) {
        lock.unlock();
        return kept->read(offset, most);
    }
    read_to_ = std::max(read_to_, std::min(offset, log_.total()));  // the reader has all before it
    return outputUpTo(results_.showable(log_.total()), offset, most);
}

std::optional<OutputChunk> LiveExecution::outputUpTo(std::uint64_t end, std::uint64_t offset,
                                                     std::size_t most) const {
    const agent::OutputLog::Chunk found = agent::OutputCut(log_).read(offset, most);
    const std::string_view bytes = found.bytes.substr(0, end - std::min(found.offset, end));
    if (bytes.empty()) return std::nullopt;
    OutputChunk chunk{found.offset, static_cast<int>(found.channel), std::string(bytes), 0};
    if (found.offset > offset)
        chunk.gap_stderr = log_.stderrBefore(found.offset) - log_.stderrBefore(offset);
    return chunk;
}

bool LiveExecution::readsDisk() const {
    const MutexLock lock(mutex_);
    return stored_ != nullptr && stored_->readsDisk();
}

std::shared_ptr<void> LiveExecution::subscribe(std::function<void()> changed) {
    std::shared_ptr<void> subscription = subscribers_.add(std::move(changed));
    if (workspace_->facts().count_running_work) return subscription;
    return std::make_shared<Attendance>(workspace_, clock_, std::move(subscription));
}

std::shared_ptr<void> LiveExecution::reading() {
    const std::shared_ptr<LiveExecution> self = weak_from_this().lock();
    if (!self) return nullptr;
    const MutexLock lock(mutex_);
    ++readers_;
    return {self.get(), [self](void*) {
                const MutexLock ended(self->mutex_);
                --self->readers_;
            }};
}

std::optional<std::uint64_t> LiveExecution::unread() const {
    const MutexLock lock(mutex_);
    if (!paced_ || readers_ == 0) return std::nullopt;
    return log_.total() - std::min(read_to_, log_.total());
}

void LiveExecution::keptBy(std::shared_ptr<Execution> stored) {
    const MutexLock lock(mutex_);
    stored_ = std::move(stored);
    log_ = agent::OutputLog(0);
    results_.clear();
}

void LiveExecution::started(const agent::ExecStart& start) {
    const MutexLock lock(mutex_);
    startsAt(start.at);
    begun_ = true;
    interpreter_ = start.interpreter;
    if (facts_.adopted && patterns_.empty()) patterns_ = patternsIn(start.note);
    if (const auto paced = start.note.find("paced"); paced != start.note.end()) {
        paced_ = *paced == true;  // found again after a restart
    }
    if (facts_.context.empty() && workspace_->contexts().find(start.context)) {
        context_ = start.context;  // found again after a restart of the server
        if (!facts_.had_ended) workspace_->contexts().begin(context_, facts_.id);
    }
}

void LiveExecution::result(std::string_view json) {
    bool at_once = false;
    bool reader = false;
    {
        const MutexLock lock(mutex_);
        if (status_ != ExecutionStatus::Running) return;
        at_once =
            !reports_.unread || (json.size() <= LiveResults::kReadAtOnce && !results_.waiting());
        reader = !at_once && !std::exchange(reading_, true);
        results_read_->clear();
        results_.add(json, log_.total());
    }
    if (at_once) readResult();
    if (!reader) return;
    const std::shared_ptr<LiveExecution> self = weak_from_this().lock();
    const bool told = self && reports_.unread(self);
    while (!told && readResult()) {
    }
}

bool LiveExecution::readResult() {
    try {
        results_.readNext();
    } catch (const std::bad_alloc&) {  // this one is dropped, and the next are read
    }
    bool more = false;
    {
        const MutexLock lock(mutex_);
        more = results_.waiting();
        if (!more) reading_ = false;
        if (!more) results_read_->set();
    }
    subscribers_.notify();
    return more;
}

void LiveExecution::output(int channel, std::uint64_t offset, std::string_view bytes) {
    {
        const MutexLock lock(mutex_);
        if (finished_ || offset < log_.total()) return;
        if (first_output_ == TimePoint{}) first_output_ = clock_.now();
        log_.skipTo(offset, 0);  // a gap without a note is stdout's
        log_.append(channel == 2 ? agent::Channel::Stderr : agent::Channel::Stdout, bytes);
    }
    subscribers_.notify();
}

void LiveExecution::gap(const agent::OutputGap& gap) {
    const MutexLock lock(mutex_);
    if (!finished_) log_.skipTo(gap.end, gap.stderr_before);
}

void LiveExecution::exited(const agent::ExecResult& result) {
    {
        const MutexLock lock(mutex_);
        if (finished_ || has_result_) return;
        result_ = result;
        has_result_ = true;
        if (result.prepared) packages_ = readPackages(*result.prepared);
        result_.prepared.reset();
        // A command that lost its parked shell ran in a shell of its own, which has no name.
        if (!result.interpreter.empty() || facts_.language.empty()) {
            interpreter_ = result.interpreter;
        }
        startsAt(result.started_at);
    }
    finish(result.status);
}

void LiveExecution::lost(const std::optional<agent::AgentError>& error) {
    bool refused = false;
    {
        const MutexLock lock(mutex_);
        refused = error && !rejoined_;
        if (refused) refusal_ = error;
    }
    if (refused) {
        finish(ExecutionStatus::Failed);  // the agent refused to run it
    } else if (error) {
        finish(ExecutionStatus::Lost);  // the agent has never got it, or has forgotten it
    } else if (const std::shared_ptr<LiveExecution> self = weak_from_this().lock();
               !self || !workspace_->detach(self)) {
        giveUp(workspace_->active() || workspace_->endedLost());
    }
}

void LiveExecution::giveUp(bool lost) {
    finish(lost ? ExecutionStatus::Lost : ExecutionStatus::Killed);
}

void LiveExecution::rejoin(const std::shared_ptr<agent::AgentClient>& agent) {
    const std::shared_ptr<LiveExecution> self = weak_from_this().lock();
    std::uint64_t output = 0;
    std::uint64_t results = 0;
    {
        const MutexLock lock(mutex_);
        if (status_ != ExecutionStatus::Running || !self) return;
        rejoined_ = true;
        output = log_.total();
        results = results_.end();
    }
    try {
        handle(agent->attach(facts_.id, output, self, facts_.output_limit, results));
    } catch (const agent::AgentLost&) {  // already lost again
        lost(std::nullopt);
    }
}

std::optional<agent::AgentError> LiveExecution::refusal() const {
    const MutexLock lock(mutex_);
    return refusal_;
}

void LiveExecution::finish(ExecutionStatus status) {
    {
        const MutexLock lock(mutex_);
        if (status_ != ExecutionStatus::Running) return;
        status_ = status;
    }
    const std::shared_ptr<LiveExecution> self = weak_from_this().lock();
    if (!self || !reports_.ended || !reports_.ended(self)) conclude();
}

bool LiveExecution::wantsArtifacts() const {
    const MutexLock lock(mutex_);
    return has_result_ && !patterns_.empty();
}

void LiveExecution::collected(CollectedArtifacts artifacts) {
    const MutexLock lock(mutex_);
    artifacts_ = std::move(artifacts);
}

void LiveExecution::conclude() {
    {
        const MutexLock lock(mutex_);
        quota_ = {};
        finished_ = true;
        handle_.reset();
    }
    concluded_.notifyAll();
    subscribers_.notify();
}

}  // namespace hearth::controller
