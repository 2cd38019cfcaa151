#include "controller/services/ContextService.h"

#include "base/Error.h"
#include "controller/executions/LanguageChoice.h"
#include "controller/workspaces/AgentErrors.h"

namespace hearth::controller {
namespace {

/// The time an interpreter may take to start cold on a busy machine, with all imports of its site.
constexpr auto kColdStart = std::chrono::seconds(30);
/// How long an answer waits for its record on a disk that is slow or full.
constexpr auto kDurable = std::chrono::seconds(1);

ContextView viewOf(const Workspace& workspace, const ContextFacts& facts) {
    ContextView view;
    view.id = facts.id;
    view.workspace_id = workspace.facts().id;
    view.tenant = workspace.facts().tenant;
    view.language = facts.language;
    view.name = facts.name;
    view.cwd = facts.cwd;
    view.created_at = formatRfc3339(facts.created);
    view.running = workspace.contexts().running(facts.id);
    return view;
}

}  // namespace

ContextService::ContextService(WorkspaceAccess& access, WorkspaceTable& table, const KeyedIds& ids,
                               const History& history)
    : access_(access), table_(table), ids_(ids), history_(history) {}

template <typename Call>
auto ContextService::ask(const std::shared_ptr<Workspace>& workspace, Call call) {
    const Awake held = access_.awake(workspace);
    if (!workspace->touch(history_.clock.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended").hint("open a new one");
    }
    try {
        const std::shared_ptr<agent::AgentClient> agent = workspace->agent();
        auto answer = call(*agent);
        workspace->agent()->touch();
        return answer;
    } catch (const agent::AgentLost& e) {
        access_.throwUnanswered(*workspace, e);
    }
}

std::string ContextService::idFor(const Principal& who, const std::string& workspace,
                                  const ContextRequest& request) const {
    if (!request.name.empty()) {
        return ids_.namedContext(who, workspace, request.language, request.name);
    }
    return ids_.context(who, workspace, request.idempotency_key);
}

ContextView ContextService::create(const Principal& who, const std::string& workspace_id,
                                   const ContextRequest& request) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, workspace_id);
    ContextRequest wanted = request;
    wanted.language = chooseLanguage(request.language, workspace->agent()->hello().languages);
    const std::string id = idFor(who, workspace_id, wanted);
    const bool keyed = wanted.name.empty() && !wanted.idempotency_key.empty();
    if (keyed) {
        const std::optional<ContextFacts> known = workspace->contexts().find(id);
        const std::optional<ContextRecord> past =
            known ? std::nullopt : history_.journal.context(id);
        if ((known && known->fingerprint != request.fingerprint) ||
            (past && past->fingerprint != request.fingerprint)) {
            throw Error(ErrorCode::IdempotencyMismatch,
                        "the Idempotency-Key was used with another request")
                .hint("use a new key for a new request");
        }
        if (past && past->ended_ms) access_.explainMissingContext(who.tenant, id);
        if (known) {
            ContextView view = viewOf(*workspace, *known);
            view.replayed = true;
            return view;
        }
    }
    history_.journal.requireRoom(who.tenant);
    // Asks the agent even for a known name: its interpreter may have died since.
    const bool repeated = ask(workspace, [&](agent::AgentClient& agent) {
        try {
            return agent.createContext({id, wanted.language, wanted.cwd, wanted.env}, kColdStart);
        } catch (const agent::AgentError& e) {
            throw contextError(e, wanted.language);
        }
    });
    ContextFacts facts{id,         wanted.language,     wanted.name,
                       wanted.cwd, request.fingerprint, history_.clock.wall()};
    if (!repeated) workspace->contexts().erase(id);  // one with this id had died unnoticed
    const bool fresh = workspace->contexts().add(facts);
    if (fresh) {
        history_.journal.record(ContextRecord{id, workspace_id, who.tenant, wanted.language,
                                              wanted.name, wanted.cwd, request.fingerprint,
                                              toUnixMillis(facts.created), std::nullopt, ""});
        history_.journal.flush(kDurable);  // its agent does not know its name
        history_.metrics.contextMade(workspace->facts().pool);
        publish(who, *workspace, id, "context.created", "created", "a context was made");
    }
    ContextView view = viewOf(*workspace, workspace->contexts().find(id).value_or(facts));
    view.replayed = repeated;
    return view;
}

void ContextService::publish(const Principal& who, const Workspace& workspace,
                             const std::string& id, const char* type, const char* reason,
                             const char* message) {
    history_.events.publish({.type = type,
                             .resource = id,
                             .pool = workspace.facts().pool,
                             .tenant = workspace.facts().tenant,
                             .reason = reason,
                             .message = message,
                             .trace_id = who.trace.trace_id});
}

std::shared_ptr<Workspace> ContextService::holder(const Principal& who,
                                                  const std::string& id) const {
    for (const std::shared_ptr<Workspace>& workspace : table_.all()) {
        if (workspace->facts().tenant == who.tenant && workspace->contexts().find(id)) {
            return workspace;
        }
    }
    return nullptr;
}

std::shared_ptr<Workspace> ContextService::require(const Principal& who, const std::string& id) {
    std::shared_ptr<Workspace> workspace = holder(who, id);
    if (workspace) return workspace;
    requireKnown(who, id);
    access_.explainMissingContext(who.tenant, id);
}

void ContextService::requireKnown(const Principal& who, const std::string& id) {
    const std::optional<ContextRecord> past = history_.journal.context(id);
    if (!past || past->tenant != who.tenant || past->ended_ms) return;
    if (table_.expectedWorkspace(past->workspace)) access_.require(who, past->workspace);
}

std::vector<ContextView> ContextService::list(const Principal& who, const std::string& workspace) {
    const std::shared_ptr<Workspace> found = access_.require(who, workspace);
    std::vector<ContextView> views;
    for (const ContextFacts& facts : found->contexts().all()) {
        views.push_back(viewOf(*found, facts));
    }
    return views;
}

ContextView ContextService::get(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const std::optional<ContextFacts> facts = workspace->contexts().find(id);
    if (!facts) access_.explainMissingContext(who.tenant, id);
    return viewOf(*workspace, *facts);
}

void ContextService::interrupt(const Principal& who, const std::string& id) {
    ask(require(who, id), [&](agent::AgentClient& agent) {
        try {
            agent.interruptContext(id);
            return true;
        } catch (const agent::AgentError& e) {
            if (e.code() != "NOT_FOUND") throw contextError(e, "");
            throw Error(ErrorCode::Conflict, "context " + id + " runs nothing");
        }
    });
}

ContextView ContextService::restart(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    workspace->contexts().expectEnd(id);
    const bool kept = ask(workspace, [&](agent::AgentClient& agent) {
        try {
            agent.restartContext(id, kColdStart);
            return true;
        } catch (const agent::AgentError& e) {
            if (e.code() != "NOT_FOUND") throw contextError(e, "");
            return false;
        }
    });
    if (!kept) {
        if (workspace->contexts().erase(id)) {
            history_.journal.contextEnded(id, toUnixMillis(history_.clock.wall()), "died");
            history_.metrics.contextEnded(workspace->facts().pool, "died");
            publish(who, *workspace, id, "context.ended", "died",
                    "a context's interpreter has died");
        }
        history_.journal.flush(kDurable);
        access_.explainMissingContext(who.tenant, id);
    }
    publish(who, *workspace, id, "context.restarted", "restarted", "a context was emptied");
    return get(who, id);
}

void ContextService::remove(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = holder(who, id);
    if (!workspace) {
        requireKnown(who, id);
        const std::optional<ContextRecord> past = history_.journal.context(id);
        if (past && past->tenant == who.tenant) return;
        throw Error(ErrorCode::NotFound, "no context " + id);
    }
    workspace->contexts().expectEnd(id);
    ask(workspace, [&](agent::AgentClient& agent) {
        try {
            agent.endContext(id);
        } catch (const agent::AgentError& e) {
            if (e.code() != "NOT_FOUND") throw contextError(e, "");
        }
        return true;
    });
    if (!workspace->contexts().erase(id)) return;  // it died, or another request ended it
    history_.journal.contextEnded(id, toUnixMillis(history_.clock.wall()), "deleted");
    history_.journal.flush(kDurable);  // else it has died, if a crash comes now
    history_.metrics.contextEnded(workspace->facts().pool, "deleted");
    publish(who, *workspace, id, "context.ended", "deleted", "a context was ended");
}

}  // namespace hearth::controller
