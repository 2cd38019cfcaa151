#include "controller/Endings.h"

namespace hearth::controller {

Endings::Endings(WorkspaceTable& table, pool::WarmPool& warm, WorkQueue& work, Journal& journal,
                 EventLog& events, metrics::Metrics& metrics, metrics::Log& log,
                 broker::Broker& broker, const Clock& clock)
    : table_(table),
      warm_(warm),
      work_(work),
      journal_(journal),
      events_(events),
      metrics_(metrics),
      log_(log),
      broker_(broker),
      clock_(clock) {}

bool Endings::end(const std::shared_ptr<Workspace>& workspace, const std::string& reason) {
    if (!workspace->beginEnd(reason)) return false;
    finish(workspace, reason, 0);
    return true;
}

bool Endings::reclaim(const std::shared_ptr<Workspace>& workspace, const std::string& reason,
                      TimePoint now) {
    const TimePoint due = workspace->nextDue();
    if (!workspace->beginEnd(reason, now)) return false;
    finish(workspace, reason, toSeconds(clock_.now() - due));
    return true;
}

void Endings::lost(const pool::SandboxId& sandbox, const std::string& why) {
    const std::optional<pool::Member> member = warm_.find(sandbox);
    if (!member || !warm_.fail(sandbox)) return;  // unknown, or its end has begun already
    log_.warn("sandbox.lost", {{"sandbox", sandbox}, {"pool", member->pool}, {"why", why}});
    metrics_.sandboxFailure(member->pool, "lost");
    if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(sandbox)) {
        end(workspace, "lost");
    } else {
        events_.publish({.type = "sandbox.failed",
                         .resource = sandbox,
                         .pool = member->pool,
                         .reason = "failed",
                         .message = why});
        metrics_.reclaim(member->pool, "failed", 0);
    }
    work_.add({"sandbox", sandbox});
    work_.add({"pool", member->pool});
}

bool Endings::retire(const pool::Member& member, const std::string& reason) {
    if (!warm_.drain(member.id)) return false;
    events_.publish({.type = "sandbox.retired",
                     .resource = member.id,
                     .pool = member.pool,
                     .reason = reason,
                     .message = "a warm sandbox was retired"});
    metrics_.reclaim(member.pool, reason, 0);
    work_.add({"sandbox", member.id});
    return true;
}

void Endings::finish(const std::shared_ptr<Workspace>& workspace, const std::string& reason,
                     double lag_seconds) {
    const WorkspaceFacts& facts = workspace->facts();
    table_.erase(*workspace);
    broker_.close(facts.sandbox);
    const std::size_t contexts = workspace->contexts().clear();
    if (contexts > 0) {
        metrics_.contextEnded(facts.pool, "workspace", static_cast<double>(contexts));
    }
    journal_.ended(facts.id, toUnixMillis(clock_.wall()), reason, facts.sandbox);
    metrics_.reclaim(facts.pool, reason, lag_seconds);
    metrics_.workspaces(facts.pool, static_cast<double>(table_.countOf(facts.pool)));
    events_.publish({.type = "workspace.reclaimed",
                     .resource = facts.id,
                     .pool = facts.pool,
                     .tenant = facts.tenant,
                     .reason = reason,
                     .message = "the workspace has ended"});
    log_.info("workspace.ended",
              {{"workspace", facts.id}, {"sandbox", facts.sandbox}, {"reason", reason}});
    warm_.drain(facts.sandbox);
    work_.add({"sandbox", facts.sandbox});
    work_.add({"pool", facts.pool});
}

}  // namespace hearth::controller
