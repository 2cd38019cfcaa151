#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {
namespace {

/// True for an end that a client asked for, and whose answer says that it has ended.
bool isAnswered(EndReason reason) {
    return reason == EndReason::Deleted || reason == EndReason::Operator ||
           reason == EndReason::Drain;
}

}  // namespace

std::optional<EndReason> markedEnd(const pool::ClaimMarks& marks, const pool::SandboxId& sandbox) {
    const std::optional<std::uint8_t> end = marks.ended(sandbox);
    if (!end) return std::nullopt;
    return *end < kEndReasons.texts.size() ? static_cast<EndReason>(*end) : EndReason::Lost;
}

WorkspaceTerminator::WorkspaceTerminator(WorkspaceTable& table, const pool::Fleet& fleet,
                                         const Epoch& epoch, WorkQueue& work,
                                         const History& history, egress::EgressGateway& gateway,
                                         UsageMeter& usage)
    : table_(table),
      fleet_(fleet),
      epoch_(epoch),
      work_(work),
      history_(history),
      gateway_(gateway),
      usage_(usage) {}

bool WorkspaceTerminator::end(const std::shared_ptr<Workspace>& workspace, EndReason reason,
                              const TraceContext& trace) {
    if (!workspace->beginEnd(reason, {}, &fleet_.marks)) return false;
    if (isAnswered(reason) && fleet_.runtime.inCluster()) tellAgent(*workspace);
    finish(workspace, reason, trace, std::nullopt);
    return true;
}

bool WorkspaceTerminator::reclaim(const std::shared_ptr<Workspace>& workspace, EndReason reason,
                                  TimePoint now) {
    const TimePoint due = workspace->nextDue();
    if (!workspace->beginEnd(reason, now, &fleet_.marks)) return false;
    finish(workspace, reason, {}, toSeconds(history_.clock.now() - due));
    return true;
}

void WorkspaceTerminator::tellAgent(const Workspace& workspace) {
    // One that does not answer ends with its Pod.
    if (workspace.silentSince() || workspace.paused()) return;
    try {
        workspace.agent()->setDeadlines(epoch_.get(), history_.clock.now(), {});
    } catch (const agent::AgentLost& e) {
        history_.log.warn("workspace.end_not_told",
                          {{"workspace", workspace.facts().id}, {"error", e.what()}});
    } catch (const agent::AgentError& e) {
        history_.log.warn("workspace.end_not_told",
                          {{"workspace", workspace.facts().id}, {"error", e.code()}});
    }
}

void WorkspaceTerminator::endMarked() {
    for (const pool::SandboxId& sandbox : fleet_.marks.all()) {
        const std::optional<EndReason> reason = markedEnd(fleet_.marks, sandbox);
        if (!reason) continue;
        const std::shared_ptr<Workspace> workspace = table_.bySandbox(sandbox);
        if (workspace ? end(workspace, *reason) : endExpected(sandbox, *reason)) {
            history_.log.info("recovery.ended", {{"sandbox", sandbox}});
        }
    }
}

void WorkspaceTerminator::warn(const Workspace& workspace, const NearEnd& end, TimePoint now) {
    const WorkspaceFacts& facts = workspace.facts();
    const auto left = std::chrono::ceil<std::chrono::seconds>(end.at - now).count();
    const char* const why = end.reason == EndReason::Idle
                                ? "because it is idle, unless it is used or touched"
                                : "because its lifetime ends, unless it is extended";
    history_.events.publish(
        {.type = "workspace.expiring",
         .resource = facts.id,
         .pool = facts.pool,
         .tenant = facts.tenant,
         .reason = kEndReasons.of(end.reason),
         .message = "the workspace ends in " + std::to_string(left) + " s, " + why});
    history_.log.debug("workspace.expiring", {{"workspace", facts.id},
                                              {"pool", facts.pool},
                                              {"reason", kEndReasons.of(end.reason)},
                                              {"seconds", left}});
}

void WorkspaceTerminator::lost(const pool::SandboxId& sandbox, const std::string& why) {
    const std::optional<pool::Member> member = fleet_.warm.find(sandbox);
    const bool first = member && fleet_.warm.fail(sandbox);
    if (first) {
        history_.log.warn("sandbox.lost",
                          {{"sandbox", sandbox}, {"pool", member->pool}, {"why", why}});
        history_.metrics.sandboxFailure(member->pool, "lost");
    }
    const std::shared_ptr<Workspace> workspace = table_.bySandbox(sandbox);
    if (workspace) {
        countKills(*workspace);
        end(workspace, workspace->lostToMemory() ? EndReason::Oom : EndReason::Lost);
    }
    const bool expected =
        !workspace && table_.expected(sandbox) &&
        endExpected(sandbox, ranOutOfMemory(sandbox) ? EndReason::Oom : EndReason::Lost);
    if (!first) return;  // unknown, or its end has already begun
    if (!workspace && !expected) {
        history_.events.publish({.type = "sandbox.failed",
                                 .resource = sandbox,
                                 .pool = member->pool,
                                 .reason = kEndReasons.of(EndReason::Failed),
                                 .message = why});
        history_.metrics.reclaim(member->pool, EndReason::Failed);
    }
    work_.add({WorkKind::Sandbox, sandbox, member->pool});
    work_.add({WorkKind::Pool, member->pool});
}

void WorkspaceTerminator::countKills(Workspace& workspace) {
    const pool::SandboxId& sandbox = workspace.facts().sandbox;
    try {
        const std::optional<pool::SandboxUsage> usage = fleet_.runtime.usage(sandbox);
        if (usage) {
            workspace.lostWith(usage->oom_kills);
        } else if (ranOutOfMemory(sandbox)) {
            workspace.ranOutOfMemory();
        }
    } catch (const std::exception& e) {  // then its executions are reported as lost
        history_.log.warn("execution.usage_unknown", {{"sandbox", sandbox}, {"error", e.what()}});
    }
}

bool WorkspaceTerminator::ranOutOfMemory(const pool::SandboxId& sandbox) {
    if (!fleet_.runtime.inCluster()) return false;  // on a machine usage() tells it, and costs less
    const std::optional<pool::SandboxInfo> info = fleet_.runtime.find(sandbox);
    return info && info->out_of_memory;
}

void WorkspaceTerminator::unanswered(const pool::SandboxId& sandbox, const agent::AgentLost& loss) {
    if (loss.loss() == agent::Loss::Late) return;
    if (loss.loss() == agent::Loss::Broken) return lost(sandbox, loss.what());
    if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(sandbox)) {
        if (workspace->fallSilent(history_.clock.now())) {
            history_.log.warn(
                "sandbox.silent",
                {{"sandbox", sandbox}, {"pool", workspace->facts().pool}, {"why", loss.what()}});
        }
        work_.add({WorkKind::Suspect, sandbox});  // always: the agent may just be answering
    } else if (!table_.expected(sandbox)) {
        lost(sandbox, loss.what());
    }
}

bool WorkspaceTerminator::endExpected(const pool::SandboxId& sandbox, EndReason reason,
                                      const TraceContext& trace) {
    const std::optional<WorkspaceTable::Expected> expected = table_.forgetExpected(sandbox);
    if (!expected) return false;
    fleet_.marks.end(sandbox, static_cast<std::uint8_t>(reason));
    if (!expected->workspace.empty()) {
        history_.journal.ended(expected->workspace, toUnixMillis(history_.clock.wall()),
                               kEndReasons.of(reason), sandbox);
        history_.metrics.reclaim(expected->pool, reason);
        history_.events.publish(
            {.type = "workspace.reclaimed",
             .resource = expected->workspace,
             .pool = expected->pool,
             .tenant = expected->tenant,
             .reason = kEndReasons.of(reason),
             .message = std::string("the workspace has ended: ") + kEndSentences.of(reason),
             .trace_id = trace.trace_id});
        history_.log.info("workspace.ended", {{"workspace", expected->workspace},
                                              {"sandbox", sandbox},
                                              {"pool", expected->pool},
                                              {"tenant", expected->tenant},
                                              {"reason", kEndReasons.of(reason)},
                                              {"trace", trace.trace_id}});
    }
    fleet_.warm.drain(sandbox);
    work_.add({WorkKind::Sandbox, sandbox});
    work_.add({WorkKind::Pool, expected->pool});
    return true;
}

bool WorkspaceTerminator::retire(const pool::Member& member, EndReason reason,
                                 const TraceContext& trace, const std::string& why) {
    fleet_.marks.set(member.id);  // only this can fail, and then nothing has happened
    if (!fleet_.warm.retire(member.id)) {
        if (!fleet_.warm.find(member.id)) fleet_.marks.clear(member.id);  // destroyed meanwhile
        return false;
    }
    fleet_.marks.end(member.id, static_cast<std::uint8_t>(reason));
    history_.events.publish(
        {.type = "sandbox.retired",
         .resource = member.id,
         .pool = member.pool,
         .reason = kEndReasons.of(reason),
         .message = "a warm sandbox was retired" + (why.empty() ? "" : ": " + why),
         .trace_id = trace.trace_id});
    history_.log.debug(
        "sandbox.retired",
        {{"sandbox", member.id}, {"pool", member.pool}, {"reason", kEndReasons.of(reason)}});
    history_.metrics.reclaim(member.pool, reason);
    work_.add({WorkKind::Sandbox, member.id, member.pool});
    return true;
}

bool WorkspaceTerminator::confirm(const std::shared_ptr<Workspace>& workspace) {
    const pool::SandboxId& sandbox = workspace->facts().sandbox;
    const std::optional<pool::Member> member = fleet_.warm.find(sandbox);
    if (member && member->phase == pool::Phase::Claimed && !workspace->agent()->lost()) return true;
    lost(sandbox, "it ended while it was claimed");
    return false;
}

void WorkspaceTerminator::finish(const std::shared_ptr<Workspace>& workspace, EndReason reason,
                                 const TraceContext& trace, std::optional<double> lag_seconds) {
    const WorkspaceFacts& facts = workspace->facts();
    const TimePoint begin = history_.clock.now();
    const std::int64_t ended_ms = toUnixMillis(history_.clock.wall());
    usage_.ended(*workspace);
    table_.erase(*workspace, ended_ms);
    workspace->giveUpDetached();
    gateway_.close(facts.sandbox);
    const std::size_t contexts = workspace->contexts().clear();
    if (contexts > 0) {
        history_.metrics.contextEnded(facts.pool, "workspace", static_cast<double>(contexts));
    }
    history_.journal.ended(facts.id, ended_ms, kEndReasons.of(reason), facts.sandbox);
    history_.metrics.reclaim(facts.pool, reason, lag_seconds);
    history_.metrics.workspaces(facts.pool, static_cast<double>(table_.countOf(facts.pool)));
    history_.events.publish(
        {.type = "workspace.reclaimed",
         .resource = facts.id,
         .pool = facts.pool,
         .tenant = facts.tenant,
         .reason = kEndReasons.of(reason),
         .message = std::string("the workspace has ended: ") + kEndSentences.of(reason),
         .trace_id = trace.trace_id,
         .one_shot = facts.one_shot});
    history_.log.info("workspace.ended",
                      {{"workspace", facts.id},
                       {"sandbox", facts.sandbox},
                       {"pool", facts.pool},
                       {"tenant", facts.tenant},
                       {"reason", kEndReasons.of(reason)},
                       {"seconds", toSeconds(history_.clock.now() - facts.created_at)},
                       {"trace", trace.trace_id}});
    fleet_.warm.drain(facts.sandbox);
    const TraceContext cause = record(facts, reason, trace, begin);
    work_.add({WorkKind::Sandbox, facts.sandbox, facts.pool, cause});
    work_.add({WorkKind::Pool, facts.pool, "", cause});
}

TraceContext WorkspaceTerminator::record(const WorkspaceFacts& facts, EndReason reason,
                                         const TraceContext& request, TimePoint begin) const {
    const metrics::Tracer& tracer = history_.tracer;
    // An end at its due time belongs to no request; it is recorded if its claim was.
    const bool asked = request.valid();
    TraceContext context = asked ? tracer.within(request) : tracer.aside(facts.trace);
    if (!tracer.records(context)) return {};
    metrics::Span span{.context = context,
                       .parent = asked ? request.span_id : "",
                       .name = "reclaim",
                       .start = begin,
                       .end = history_.clock.now(),
                       .attributes = {{"hearth.pool", facts.pool},
                                      {metrics::kTenantAttribute, facts.tenant},
                                      {"hearth.workspace.id", facts.id},
                                      {"hearth.sandbox.id", facts.sandbox},
                                      {"hearth.reclaim.reason", kEndReasons.of(reason)}}};
    if (facts.trace.valid() && facts.trace.span_id != request.span_id) {
        span.links.push_back(facts.trace);
    }
    tracer.end(std::move(span));
    return context;
}

}  // namespace hearth::controller
