#include "controller/ContextService.h"

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/AgentErrors.h"
#include "controller/Languages.h"

namespace hearth::controller {
namespace {

/// An interpreter that starts cold on a busy machine, with all that its site imports.
constexpr auto kStartTime = std::chrono::seconds(30);

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

void explainMissingContext(Journal& journal, const std::string& tenant, const std::string& id) {
    const std::optional<ContextRecord> past = journal.context(id);
    if (!past || past->tenant != tenant) throw Error(ErrorCode::NotFound, "no context " + id);
    const std::string reason = past->reason.empty() ? "lost" : past->reason;
    throw Error(ErrorCode::Gone, "context " + id + " has ended: " + reason)
        .ended(reason, formatRfc3339(fromUnixMillis(past->ended_ms.value_or(past->created_ms))))
        .hint("make a new one in its workspace");
}

ContextService::ContextService(WorkspaceService& workspaces, WorkspaceTable& table,
                               Endings& endings, Journal& journal, EventLog& events,
                               metrics::Metrics& metrics, const std::string& secret_key,
                               const Clock& clock)
    : workspaces_(workspaces),
      table_(table),
      endings_(endings),
      journal_(journal),
      events_(events),
      metrics_(metrics),
      secret_key_(secret_key),
      clock_(clock) {}

template <typename Call>
auto ContextService::ask(const std::shared_ptr<Workspace>& workspace, Call call) {
    if (!workspace->touch(clock_.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended").hint("open a new one");
    }
    try {
        auto answer = call(workspace->agent());
        workspace->agent().touch();
        return answer;
    } catch (const agent::AgentLost& e) {
        endings_.lost(workspace->facts().sandbox, e.what());
        throw Error(ErrorCode::SandboxLost, "the workspace's sandbox did not answer")
            .hint("open a new workspace");
    }
}

std::string ContextService::idFor(const Principal& who, const std::string& workspace,
                                  const ContextRequest& request) const {
    if (!request.name.empty()) {
        return derivedId("cx_", secret_key_,
                         {"context name", who.tenant, workspace, request.language, request.name});
    }
    if (request.idempotency_key.empty()) return newId("cx_");
    return derivedId("cx_", secret_key_,
                     {"context", who.tenant, workspace, request.idempotency_key});
}

ContextView ContextService::create(const Principal& who, const std::string& workspace_id,
                                   const ContextRequest& request) {
    const std::shared_ptr<Workspace> workspace = workspaces_.require(who, workspace_id);
    ContextRequest wanted = request;
    wanted.language = chooseLanguage(request.language, workspace->agent().hello().languages);
    const std::string id = idFor(who, workspace_id, wanted);
    const bool keyed = wanted.name.empty() && !wanted.idempotency_key.empty();
    if (keyed) {
        const std::optional<ContextFacts> known = workspace->contexts().find(id);
        const std::optional<ContextRecord> past = known ? std::nullopt : journal_.context(id);
        if ((known && known->fingerprint != request.fingerprint) ||
            (past && past->fingerprint != request.fingerprint)) {
            throw Error(ErrorCode::IdempotencyMismatch,
                        "the Idempotency-Key was used with another request")
                .hint("use a new key for a new request");
        }
        if (past && past->ended_ms) explainMissingContext(journal_, who.tenant, id);
        if (known) {
            ContextView view = viewOf(*workspace, *known);
            view.replayed = true;
            return view;
        }
    }
    // A name is asked for at the agent even where we know it: an interpreter may have died since.
    const bool repeated = ask(workspace, [&](agent::AgentClient& agent) {
        try {
            return agent.createContext({id, wanted.language, wanted.cwd, wanted.env}, kStartTime);
        } catch (const agent::AgentError& e) {
            throw contextError(e, wanted.language);
        }
    });
    ContextFacts facts{id,         wanted.language,     wanted.name,
                       wanted.cwd, request.fingerprint, clock_.wall()};
    if (!repeated) workspace->contexts().erase(id);  // one of this id had died unnoticed
    const bool fresh = workspace->contexts().add(facts);
    if (fresh) {
        journal_.record(ContextRecord{id, workspace_id, who.tenant, wanted.language, wanted.name,
                                      wanted.cwd, request.fingerprint, toUnixMillis(facts.created),
                                      std::nullopt, ""});
        metrics_.contextMade(workspace->facts().pool);
        publish(*workspace, id, "context.created", "created", "a context was made");
    }
    ContextView view = viewOf(*workspace, workspace->contexts().find(id).value_or(facts));
    view.replayed = repeated;
    return view;
}

void ContextService::publish(const Workspace& workspace, const std::string& id, const char* type,
                             const char* reason, const char* message) {
    events_.publish({.type = type,
                     .resource = id,
                     .pool = workspace.facts().pool,
                     .tenant = workspace.facts().tenant,
                     .reason = reason,
                     .message = message});
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
    if (!workspace) explainMissingContext(journal_, who.tenant, id);
    return workspace;
}

std::vector<ContextView> ContextService::list(const Principal& who, const std::string& workspace) {
    const std::shared_ptr<Workspace> found = workspaces_.require(who, workspace);
    std::vector<ContextView> views;
    for (const ContextFacts& facts : found->contexts().all()) {
        views.push_back(viewOf(*found, facts));
    }
    return views;
}

ContextView ContextService::get(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const std::optional<ContextFacts> facts = workspace->contexts().find(id);
    if (!facts) explainMissingContext(journal_, who.tenant, id);
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
            agent.restartContext(id, kStartTime);
            return true;
        } catch (const agent::AgentError& e) {
            if (e.code() != "NOT_FOUND") throw contextError(e, "");
            return false;
        }
    });
    if (!kept) {
        if (workspace->contexts().erase(id)) {
            journal_.contextEnded(id, toUnixMillis(clock_.wall()), "died");
            metrics_.contextEnded(workspace->facts().pool, "died");
            publish(*workspace, id, "context.ended", "died", "a context's interpreter has died");
        }
        journal_.flush(std::chrono::seconds(1));
        explainMissingContext(journal_, who.tenant, id);
    }
    publish(*workspace, id, "context.restarted", "restarted", "a context was emptied");
    return get(who, id);
}

void ContextService::remove(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = holder(who, id);
    if (!workspace) {
        const std::optional<ContextRecord> past = journal_.context(id);
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
    journal_.contextEnded(id, toUnixMillis(clock_.wall()), "deleted");
    metrics_.contextEnded(workspace->facts().pool, "deleted");
    publish(*workspace, id, "context.ended", "deleted", "a context was ended");
}

}  // namespace hearth::controller
