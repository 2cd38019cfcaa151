#include "controller/services/ExecutionService.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/Error.h"
#include "controller/contract/RequestLimits.h"
#include "controller/executions/ExecutionPackages.h"
#include "controller/executions/ReplayedExecution.h"
#include "controller/executions/StoredExecution.h"
#include "controller/workspaces/AgentErrors.h"

namespace hearth::controller {
namespace {

constexpr auto kStdinTimeout = std::chrono::seconds(30);

/// Its tenant and admins may open an execution, but operators may not.
bool opens(const Principal& who, const std::string& tenant) {
    return tenant == who.tenant || who.atLeast(Role::Admin);
}

}  // namespace

ExecutionService::ExecutionService(WorkspaceAccess& access, WorkspaceOpener& opener,
                                   LiveExecutions& live, ExecutionStarter& starter,
                                   const ArtifactStore& artifacts, const KeyedIds& ids,
                                   const History& history)
    : access_(access),
      opener_(opener),
      live_(live),
      starter_(starter),
      artifacts_(artifacts),
      ids_(ids),
      history_(history) {}

std::shared_ptr<Execution> ExecutionService::start(const Principal& who,
                                                   const std::string& workspace,
                                                   const ExecutionRequest& request) {
    checkRequest(request);
    const std::string id = ids_.execution(who, workspace, request.idempotency_key);
    if (!request.idempotency_key.empty()) {
        if (std::shared_ptr<Execution> known = replay(who, id, request.fingerprint)) return known;
    }
    history_.journal.requireRoom(who.tenant);
    return starter_.launch(access_.require(who, workspace), request, id, who.trace, std::nullopt);
}

Task<std::shared_ptr<Execution>> ExecutionService::startOneShot(Principal who,
                                                                WorkspaceRequest where,
                                                                ExecutionRequest request) {
    // Checked before it costs a sandbox.
    checkRequest(request);
    checkPackages(request, request.language);
    where.idempotency_key = request.idempotency_key;
    where.fingerprint = request.fingerprint;
    where.started_at = request.started_at;
    const std::string id = ids_.oneShot(who, request.idempotency_key);
    if (!request.idempotency_key.empty()) {
        if (std::shared_ptr<Execution> first = replay(who, id, request.fingerprint)) {
            co_return first;
        }
    }
    history_.journal.requireRoom(who.tenant);
    live_.requireRoom(
        who.tenant, request.output_limit + (request.stdin_bytes ? request.stdin_bytes->size() : 0));
    Task<WorkspaceOpener::Opened> opening = opener_.open(who, where, true);
    const WorkspaceOpener::Opened opened = co_await opening;
    if (opened.replayed) {
        // The first request may have finished meanwhile: then its result is the answer.
        if (std::shared_ptr<Execution> first = replay(who, id, request.fingerprint)) {
            co_return first;
        }
    }
    if (opened.all.empty()) {
        throw Error(ErrorCode::SandboxLost, "the one shot's sandbox ended before its result")
            .hint("repeat it with a new Idempotency-Key");
    }
    co_return launch(opened, request, id, who.trace);
}

std::shared_ptr<Execution> ExecutionService::launch(const WorkspaceOpener::Opened& opened,
                                                    const ExecutionRequest& request,
                                                    const std::string& id,
                                                    const TraceContext& trace) {
    const Claimer::Claimed& claimed = opened.all.front();
    try {
        return starter_.launch(claimed.workspace, request, id, trace,
                               opened.replayed ? std::nullopt : std::optional(claimed.ledger));
    } catch (const Error& e) {
        // A repeated request must not end the execution of the first one.
        const bool later = opened.replayed && (e.code() == ErrorCode::Unavailable ||
                                               e.code() == ErrorCode::RateLimited);
        if (!later) opener_.discard(claimed.workspace);
        throw;
    } catch (...) {
        opener_.discard(claimed.workspace);
        throw;
    }
}

std::shared_ptr<Execution> ExecutionService::replay(const Principal& who, const std::string& id,
                                                    const std::string& fingerprint) {
    const auto check = [&](const std::string& first) {
        if (first == fingerprint) return;
        throw Error(ErrorCode::IdempotencyMismatch,
                    "the Idempotency-Key was used with another request")
            .hint("use a new key for a new request");
    };
    if (std::shared_ptr<LiveExecution> live = live_.find(id)) {
        check(live->facts().fingerprint);
        return std::make_shared<ReplayedExecution>(std::move(live));
    }
    const std::optional<ExecutionRecord> past = history_.journal.execution(id, who.tenant);
    if (!past || past->tenant != who.tenant) return nullptr;
    check(past->fingerprint);
    return std::make_shared<ReplayedExecution>(stored(*past));
}

std::shared_ptr<Execution> ExecutionService::stored(const ExecutionRecord& record) const {
    return storedExecution(record, history_.journal, &artifacts_);
}

std::shared_ptr<Execution> ExecutionService::find(const Principal& who, const std::string& id) {
    if (std::shared_ptr<LiveExecution> live = live_.find(id);
        live && opens(who, live->workspace()->facts().tenant)) {
        return live;
    }
    const std::optional<ExecutionRecord> past = history_.journal.execution(id, who.tenant);
    if (!past || !opens(who, past->tenant)) {
        if (!past && access_.expectsOf(who.tenant)) {
            throw Error(ErrorCode::Unavailable,
                        "execution " + id +
                            " is not known yet: a sandbox from before the restart does not answer")
                .hint("try again: the server asks that sandbox until it answers")
                .retryAfter(std::chrono::seconds(1));
        }
        throw Error(ErrorCode::NotFound, "no execution " + id);
    }
    return stored(*past);
}

std::vector<std::shared_ptr<Execution>> ExecutionService::running(const Principal& who) {
    std::vector<std::shared_ptr<Execution>> found;
    for (std::shared_ptr<LiveExecution>& execution : live_.all()) {  // sorted by id
        if (execution->finished() || !opens(who, execution->workspace()->facts().tenant)) continue;
        found.push_back(std::move(execution));
    }
    return found;
}

std::vector<ListedExecution> ExecutionService::list(const Principal& who,
                                                    const std::string& workspace) {
    std::vector<ListedExecution> found;
    std::set<std::string> seen;
    for (const std::shared_ptr<LiveExecution>& execution : live_.all()) {
        const WorkspaceFacts& facts = execution->workspace()->facts();
        if (facts.id != workspace || !opens(who, facts.tenant)) continue;
        found.push_back({execution->id(), execution->startedAt()});
        seen.insert(execution->id());
    }
    for (ExecutionLine& line : history_.journal.executionsOf(workspace, who.tenant)) {
        if (!opens(who, line.tenant) || seen.contains(line.id)) continue;
        found.push_back({std::move(line.id), std::move(line.started_at)});
    }
    if (found.empty()) {  // throws the error that says what became of it
        access_.requireVisible(who, workspace);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return std::tie(a.started_at, a.id) > std::tie(b.started_at, b.id);
    });
    return found;
}

std::shared_ptr<Execution> ExecutionService::listed(const Principal& who, const std::string& id) {
    if (std::shared_ptr<LiveExecution> live = live_.find(id)) {
        return opens(who, live->workspace()->facts().tenant) ? live : nullptr;
    }
    const std::optional<ExecutionRecord> past = history_.journal.listedExecution(id, who.tenant);
    if (!past || !opens(who, past->tenant)) return nullptr;
    try {
        return stored(*past);
    } catch (const std::exception& e) {  // an unreadable one must not hide the others
        history_.log.error("execution.unreadable", {{"execution", id}, {"error", e.what()}});
        return nullptr;
    }
}

std::shared_ptr<LiveExecution> ExecutionService::runningOrNull(const Principal& who,
                                                               const std::string& id) {
    if (std::shared_ptr<LiveExecution> live = live_.find(id);
        live && opens(who, live->workspace()->facts().tenant) && !live->finished()) {
        return live;
    }
    find(who, id);  // throws NotFound
    return nullptr;
}

std::shared_ptr<LiveExecution> ExecutionService::running(const Principal& who,
                                                         const std::string& id) {
    if (std::shared_ptr<LiveExecution> live = runningOrNull(who, id)) return live;
    throw Error(ErrorCode::Conflict, "execution " + id + " has ended");
}

template <typename Call>
void ExecutionService::ask(const LiveExecution& execution, Call call) {
    const Awake held = access_.awake(execution.workspace());
    try {
        call(*execution.workspace()->agent());
    } catch (const agent::AgentError& e) {
        if (e.code() == "NOT_FOUND") {
            throw Error(ErrorCode::Conflict, "execution " + execution.id() + " has ended");
        }
        throw clientError(e);
    } catch (const agent::AgentLost& e) {
        access_.throwUnanswered(*execution.workspace(), e);
    }
}

void ExecutionService::signal(const Principal& who, const std::string& id, std::string_view name) {
    const std::shared_ptr<LiveExecution> execution = running(who, id);
    ask(*execution, [&](agent::AgentClient& agent) { agent.signal(id, name); });
}

void ExecutionService::resize(const Principal& who, const std::string& id, unsigned columns,
                              unsigned rows) {
    const std::shared_ptr<LiveExecution> execution = running(who, id);
    ask(*execution, [&](agent::AgentClient& agent) { agent.resize(id, columns, rows); });
}

void ExecutionService::writeStdin(const Principal& who, const std::string& id,
                                  std::string_view bytes, bool close) {
    // A program may end with the bytes before: then there is nothing left to close.
    const std::shared_ptr<LiveExecution> execution =
        bytes.empty() && close ? runningOrNull(who, id) : running(who, id);
    if (!execution) return;
    const std::shared_ptr<agent::ExecHandle> handle = execution->handle();
    if (!handle || !execution->facts().stdin_open) {
        throw Error(ErrorCode::Conflict, "execution " + id + " takes no input")
            .hint("start it with stdinOpen or a pty");
    }
    if (!execution->workspace()->touch(history_.clock.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended");
    }
    ask(*execution, [&](agent::AgentClient&) {
        if (!bytes.empty()) handle->writeStdin(bytes, kStdinTimeout);
        if (close) handle->closeStdin();
    });
}

void ExecutionService::kill(const Principal& who, const std::string& id) {
    const std::shared_ptr<Execution> any = find(who, id);
    if (any->finished()) return;
    try {
        signal(who, id, "KILL");
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Conflict) throw;  // Conflict: it ended meanwhile, as requested
    }
}

}  // namespace hearth::controller
