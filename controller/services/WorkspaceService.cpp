#include "controller/services/WorkspaceService.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {

namespace {

/// Returns the view; for other tenants, except admins, without the data that its tenant set.
WorkspaceView shownTo(const Principal& who, WorkspaceView view) {
    if (view.tenant == who.tenant || who.atLeast(Role::Admin)) return view;
    view.name.reset();
    view.labels.clear();
    view.credentials.clear();
    return view;
}

EndReason endedBy(const Principal& who, const std::string& tenant) {
    return who.tenant == tenant ? EndReason::Deleted : EndReason::Operator;
}

}  // namespace

/// Keeps a workspace from being idle while a file is transferred.
class WorkspaceService::Busy {
public:
    Busy(Workspace& workspace, const Clock& clock) : workspace_(workspace), clock_(clock) {
        if (!workspace_.workBegan(Activity::Transfer, clock_.now())) {
            throw Error(ErrorCode::Gone, "the workspace has just ended");
        }
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() { workspace_.workEnded(Activity::Transfer, clock_.now()); }

private:
    Workspace& workspace_;
    const Clock& clock_;
};

WorkspaceService::WorkspaceService(WorkspaceAccess& access, WorkspaceOpener& opener,
                                   WorkspaceTable& table, WorkspaceTerminator& terminator,
                                   const Epoch& epoch, egress::EgressGateway& gateway,
                                   const History& history)
    : access_(access),
      opener_(opener),
      table_(table),
      terminator_(terminator),
      epoch_(epoch),
      gateway_(gateway),
      history_(history) {}

Task<WorkspaceView> WorkspaceService::create(Principal who, WorkspaceRequest request) {
    Task<WorkspaceOpener::Opened> opening = opener_.open(who, request, false);
    const WorkspaceOpener::Opened opened = co_await opening;
    co_return viewsOf(who, opened).front();
}

Task<std::vector<WorkspaceView>> WorkspaceService::createAll(Principal who,
                                                             WorkspaceRequest request,
                                                             std::size_t count) {
    Task<WorkspaceOpener::Opened> opening = opener_.openAll(who, request, count);
    const WorkspaceOpener::Opened opened = co_await opening;
    co_return viewsOf(who, opened);
}

std::vector<WorkspaceView> WorkspaceService::viewsOf(const Principal& who,
                                                     const WorkspaceOpener::Opened& opened) {
    if (opened.all.empty()) access_.explainMissing(who, opened.ended);
    std::vector<WorkspaceView> views;
    for (const Claimer::Claimed& claimed : opened.all) {
        views.push_back(claimed.workspace->view());
        if (!opened.replayed) views.back().claim = claimed.ledger;
        views.back().replayed = opened.replayed;
    }
    return views;
}

WorkspaceView WorkspaceService::get(const Principal& who, const std::string& id) {
    if (who.atLeast(Role::Operator)) {
        if (const std::shared_ptr<Workspace> any = table_.find(id))
            return shownTo(who, any->view());
    }
    return access_.require(who, id)->view();
}

Page<WorkspaceView> WorkspaceService::list(const Principal& who, const ListQuery& query) {
    Page<WorkspaceView> page;
    std::vector<std::shared_ptr<Workspace>> all = table_.all();  // sorted by id
    for (const std::shared_ptr<Workspace>& workspace : all) {
        const WorkspaceFacts& facts = workspace->facts();
        if (facts.tenant != who.tenant && !who.atLeast(Role::Operator)) continue;
        if (facts.id <= query.cursor) continue;
        // Hidden before the labels are compared: a query must not reveal them.
        WorkspaceView view = shownTo(who, workspace->view());
        const bool fits = std::all_of(query.labels.begin(), query.labels.end(), [&](const auto& l) {
            const auto found = view.labels.find(l.first);
            return found != view.labels.end() && found->second == l.second;
        });
        if (!fits) continue;
        if (page.items.size() == query.limit) {
            page.next_cursor = page.items.back().id;
            break;
        }
        page.items.push_back(std::move(view));
    }
    page.unanswered = table_.countExpected([&](const WorkspaceTable::Expected& one) {
        return one.tenant.empty() || one.tenant == who.tenant || who.atLeast(Role::Operator);
    });
    return page;
}

WorkspaceView WorkspaceService::patch(const Principal& who, const std::string& id,
                                      const WorkspacePatch& patch) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const WorkspaceFacts& facts = workspace->facts();
    std::optional<TimePoint> expires;
    if (patch.lifetime_from_now) {
        const TimePoint now = history_.clock.now();
        expires = now + *patch.lifetime_from_now;
        const TimePoint most = facts.created_at + facts.max_lifetime;
        if (patch.lifetime_from_now->count() <= 0) {
            throw Error(ErrorCode::InvalidArgument, "a deadline must not be in the past")
                .field("/maxLifetimeSeconds", "must be above 0");
        }
        if (facts.max_lifetime.count() > 0 && *expires > most) {
            throw Error(ErrorCode::InvalidArgument,
                        "the pool ends its workspaces after " +
                            std::to_string(facts.max_lifetime.count() / 1000) + " s")
                .field(
                    "/maxLifetimeSeconds",
                    "must be at most " +
                        std::to_string(std::max<std::int64_t>(
                            0,
                            std::chrono::duration_cast<std::chrono::seconds>(most - now).count())));
        }
    }
    if (patch.labels) {
        workspace->relabel(*patch.labels);
        history_.journal.labels(id, workspace->view().labels);
    }
    if (patch.idle_timeout || expires) {
        const agent::Deadlines now_in_force = access_.ask(workspace, "", [&] {
            return workspace->agent()->setDeadlines(epoch_.get(), expires, patch.idle_timeout);
        });
        workspace->deadlines(now_in_force.expires_at, now_in_force.idle_timeout);
    }
    return touch(who, id);
}

WorkspaceView WorkspaceService::touch(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    access_.ask(workspace, "", [&] { return workspace->agent()->touch(); });
    if (!workspace->touch(history_.clock.now())) access_.explainMissing(who, id);
    return workspace->view();
}

void WorkspaceService::close(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (workspace && WorkspaceAccess::sees(who, workspace->facts().tenant)) {
        workspace->awaitResults();
        terminator_.end(workspace, endedBy(who, workspace->facts().tenant), who.trace);
        return;
    }
    const std::optional<WorkspaceRecord> past = history_.journal.workspace(id);
    if (!past || !WorkspaceAccess::sees(who, past->tenant)) {
        throw Error(ErrorCode::NotFound, "no workspace " + id);
    }
    if (const auto expected = table_.expectedWorkspace(id)) {
        terminator_.endExpected(expected->sandbox, endedBy(who, past->tenant), who.trace);
    }
}

WorkspaceUsage WorkspaceService::usage(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = access_.requireVisible(who, id);
    WorkspaceUsage out;
    const agent::AgentUsage told =
        access_.ask(workspace, "", [&] { return workspace->agent()->usage(); });
    if (const auto used = access_.used(*workspace, told)) {
        out.cpu_ms = used->cpu_ns / 1'000'000;
        out.memory_bytes = used->memory_bytes;
        out.memory_peak_bytes = used->memory_peak_bytes;
        out.processes = used->processes;
    }
    out.disk_bytes = told.disk_used;
    out.disk_limit_bytes = told.disk_total;
    out.gpus = workspace->facts().gpus;
    return out;
}

egress::EgressReport WorkspaceService::egress(const Principal& who, const std::string& id) {
    return gateway_.report(access_.requireVisible(who, id)->facts().sandbox);
}

std::vector<std::string> WorkspaceService::languages(const Principal& who, const std::string& id) {
    return access_.require(who, id)->agent()->hello().languages;
}

agent::FileStat WorkspaceService::stat(const Principal& who, const std::string& id,
                                       const std::string& path,
                                       std::chrono::milliseconds patience) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    return access_.ask(workspace, path, [&] { return workspace->agent()->stat(path, patience); });
}

void WorkspaceService::readFile(const Principal& who, const std::string& id,
                                const std::string& path, std::uint64_t offset, std::uint64_t length,
                                const std::function<void(const agent::FileStat&)>& begin,
                                const std::function<bool(std::string_view)>& chunk) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    access_.ask(workspace, path,
                [&] { workspace->agent()->readFile(path, offset, length, begin, chunk); });
}

agent::FileStat WorkspaceService::writeFile(
    const Principal& who, const std::string& id, const std::string& path,
    std::optional<unsigned> mode, const std::function<std::size_t(char*, std::size_t)>& next) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    agent::FileStat written = access_.ask(
        workspace, path, [&] { return workspace->agent()->writeFile(path, mode, next); });
    of_files_.notify(id);
    return written;
}

void WorkspaceService::readArchive(const Principal& who, const std::string& id,
                                   const std::string& path,
                                   const std::function<bool(std::string_view)>& chunk) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    access_.ask(workspace, path, [&] { workspace->agent()->readArchive(path, chunk); });
}

agent::ArchiveCount WorkspaceService::writeArchive(
    const Principal& who, const std::string& id, const std::string& path,
    const std::function<std::size_t(char*, std::size_t)>& next) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    const agent::ArchiveCount count =
        access_.ask(workspace, path, [&] { return workspace->agent()->writeArchive(path, next); });
    of_files_.notify(id);
    return count;
}

agent::FileList WorkspaceService::listFiles(const Principal& who, const std::string& id,
                                            const std::string& path, bool recursive,
                                            std::size_t limit, const std::string& after) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    return access_.ask(workspace, path,
                       [&] { return workspace->agent()->list(path, recursive, limit, after); });
}

void WorkspaceService::makeDirectory(const Principal& who, const std::string& id,
                                     const std::string& path) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    access_.ask(workspace, path, [&] { workspace->agent()->makeDirectory(path); });
    of_files_.notify(id);
}

void WorkspaceService::moveFile(const Principal& who, const std::string& id,
                                const std::string& from, const std::string& to) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    access_.ask(
        workspace, "from " + from, [&] { workspace->agent()->move(from, to); }, "to " + to);
    of_files_.notify(id);
}

void WorkspaceService::removeFile(const Principal& who, const std::string& id,
                                  const std::string& path, bool recursive) {
    const std::shared_ptr<Workspace> workspace = access_.require(who, id);
    const Busy busy(*workspace, history_.clock);
    try {
        access_.ask(workspace, path, [&] { workspace->agent()->remove(path, recursive); });
    } catch (const Error& e) {
        if (recursive || e.code() != ErrorCode::Conflict) throw;
        throw Error(ErrorCode::Conflict, "the directory " + path + " is not empty")
            .hint("delete what is in it first, or all of it: recursive=true, hearth rm -r");
    }
    of_files_.notify(id);
}

std::shared_ptr<void> WorkspaceService::subscribeToFiles(
    std::function<void(const std::string& workspace)> changed) {
    return of_files_.add(std::move(changed));
}

}  // namespace hearth::controller
