#include "controller/WorkspaceService.h"

#include <algorithm>
#include <set>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/AgentErrors.h"
#include "controller/RequestLimits.h"

namespace hearth::controller {

namespace {

/// `known`: what there is instead.
Error noLanguage(const std::string& who, const std::string& language,
                 const std::set<std::string>& known) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    Error error(ErrorCode::InvalidSpec, who + " no language " + language);
    error
        .field("/language", names.empty() ? "the image has none: use command or argv"
                                          : "is not in the image; one of " + names)
        .hint(names.empty() ? "the image has no language: run its programs by command or argv"
                            : "there is: " + names);
    return error;
}

}  // namespace

/// Keeps a workspace from being idle while a file is transferred.
class WorkspaceService::Busy {
public:
    Busy(Workspace& workspace, const Clock& clock) : workspace_(workspace), clock_(clock) {
        if (!workspace_.workBegan(clock_.now())) {
            throw Error(ErrorCode::Gone, "the workspace has just ended");
        }
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() { workspace_.workEnded(clock_.now()); }

private:
    Workspace& workspace_;
    const Clock& clock_;
};

WorkspaceService::WorkspaceService(WorkspaceTable& table, Claims& claims, Endings& endings,
                                   SpecStore& specs, Journal& journal, SandboxReconciler& sandboxes,
                                   const pool::WarmPool& warm, pool::ContainerRuntime& runtime,
                                   OnDemandPools& on_demand, broker::Broker& broker,
                                   std::string default_pool, const std::string& secret_key,
                                   const Clock& clock)
    : table_(table),
      claims_(claims),
      endings_(endings),
      specs_(specs),
      journal_(journal),
      sandboxes_(sandboxes),
      warm_(warm),
      runtime_(runtime),
      on_demand_(on_demand),
      broker_(broker),
      default_pool_(std::move(default_pool)),
      secret_key_(secret_key),
      clock_(clock) {}

void WorkspaceService::requireDefaultPool(const std::vector<PoolPtr>& pools) const {
    if (default_pool_.empty()) return;
    const bool declared = std::any_of(pools.begin(), pools.end(), [&](const PoolPtr& pool) {
        return !pool->deleting && pool->name == default_pool_;
    });
    if (declared) return;
    std::string names;
    for (const PoolPtr& pool : pools) {
        if (pool->deleting || !pool->on_demand.empty()) continue;
        names += (names.empty() ? "" : ", ") + pool->name;
    }
    throw Error(ErrorCode::NotFound, "the default pool " + default_pool_ + " is not declared")
        .hint(names.empty() ? "no pool is: declare it with hearth apply -f"
                            : "name one of those that are: " + names +
                                  "; or an operator declares it with hearth apply -f, or names "
                                  "another with hearth serve --default-pool");
}

OnDemandPools::Found WorkspaceService::choosePool(const Principal& who,
                                                  const WorkspaceRequest& request) {
    // A pool whose languages nobody knows yet may have it; the claim then finds out.
    const auto speaks = [&](const Pool& pool) {
        if (!request.language) return true;
        const auto known = warm_.languages(pool.name);
        return !known || std::find(known->begin(), known->end(), *request.language) != known->end();
    };
    const auto languagesOf = [&](const std::vector<PoolPtr>& some) {
        std::set<std::string> all;
        for (const PoolPtr& pool : some) {
            if (const auto known = warm_.languages(pool->name))
                all.insert(known->begin(), known->end());
        }
        return all;
    };
    const auto has_image = [&](const Pool& pool) {
        return !request.image || runtime_.sameImage(pool.spec.image, *request.image);
    };
    // Which of the network's modes a pool must offer; a pool that offers more is narrowed.
    const auto offers = [&](const Pool& pool) {
        const auto asked = broker::parseNetworkMode(request.network.value_or("None"));
        return asked && *asked <= pool.spec.network;
    };
    const auto roomy = [&](const Pool& pool) { return request.limits.within(pool.spec.limits); };
    if (request.pool) {
        PoolPtr pool = specs_.find(*request.pool);
        // A pool that a claim's image brought is asked for by its image, which must be allowed.
        const bool hidden = pool && !pool->on_demand.empty() && !who.atLeast(Role::Operator) &&
                            !table_.holds(who.tenant, pool->name);
        if (!pool || pool->deleting || hidden) {
            throw specs_.noPool(*request.pool);
        }
        if (!has_image(*pool)) {
            throw Error(ErrorCode::InvalidSpec,
                        "pool " + pool->name + " has image " + pool->spec.image)
                .field("/image", "is not the image of the pool");
        }
        if (!speaks(*pool)) {
            throw noLanguage("pool " + pool->name + " has", *request.language, languagesOf({pool}));
        }
        if (!roomy(*pool)) throw tooSmall(pool->name, pool->spec.limits, request.limits);
        return {std::move(pool), {}};
    }
    std::vector<PoolPtr> pools = specs_.all();
    if (!request.image) requireDefaultPool(pools);
    // The default pool first, then the oldest.
    std::stable_partition(pools.begin(), pools.end(),
                          [&](const PoolPtr& pool) { return pool->name == default_pool_; });
    std::vector<PoolPtr> imaged;
    std::vector<PoolPtr> small;
    bool offline = false;  // there was one, but for its network
    for (PoolPtr& pool : pools) {
        // Those made for claims have their own way: what is allowed may have changed.
        if (pool->deleting || !pool->on_demand.empty() || !has_image(*pool)) continue;
        if (!offers(*pool)) {
            offline = true;
            continue;
        }
        if (!speaks(*pool)) {
            imaged.push_back(pool);
        } else if (!roomy(*pool)) {
            small.push_back(pool);
        } else {
            return {std::move(pool), {}};
        }
    }
    if (!small.empty()) throw allTooSmall(small, request.limits);
    if (!imaged.empty()) throw noLanguage("the pools have", *request.language, languagesOf(imaged));
    if (offline) {
        throw Error(ErrorCode::InvalidSpec, "no pool offers network " + *request.network)
            .field("/network", "is more than any pool offers")
            .hint("an operator declares it in a pool's template.network");
    }
    if (!request.image) {
        throw Error(ErrorCode::InvalidSpec, "no pool is declared")
            .hint("declare one with hearth apply -f");
    }
    OnDemandPools::Found found = on_demand_.poolFor(*request.image, request.patience);
    if (!speaks(*found.pool)) {
        throw noLanguage("image " + *request.image + " has", *request.language,
                         languagesOf({found.pool}));
    }
    if (!roomy(*found.pool)) throw allTooSmall({found.pool}, request.limits);
    return found;
}

std::string WorkspaceService::claimIdFor(const Principal& who, const WorkspaceRequest& request,
                                         bool one_shot) const {
    if (request.idempotency_key.empty()) return newId("cl_");
    return derivedId("cl_", secret_key_,
                     {one_shot ? "oneshot" : "workspace", who.tenant, request.idempotency_key});
}

std::string WorkspaceService::workspaceIdFor(const std::string& claim_id) const {
    return derivedId("ws_", secret_key_, {"workspace of claim", claim_id});
}

template <typename Call>
auto WorkspaceService::ask(const std::shared_ptr<Workspace>& workspace, const std::string& path,
                           Call call) {
    try {
        return call();
    } catch (const agent::AgentError& e) {
        throw clientError(e, path);
    } catch (const agent::AgentLost& e) {
        if (workspace->agent().lost()) endings_.lost(workspace->facts().sandbox, e.what());
        throw Error(ErrorCode::SandboxLost, "the workspace's sandbox did not answer")
            .hint("open a new workspace");
    }
}

Claims::Claimed WorkspaceService::open(const Principal& who, const WorkspaceRequest& request,
                                       bool one_shot, bool& replayed) {
    replayed = false;
    checkRequest(request);
    const std::string claim_id = claimIdFor(who, request, one_shot);
    const bool keyed = !request.idempotency_key.empty();
    const auto mismatch = [] {
        return Error(ErrorCode::IdempotencyMismatch,
                     "the Idempotency-Key was used with another request")
            .hint("use a new key for a new request");
    };
    if (keyed) {
        const std::lock_guard lock(mutex_);
        if (!in_flight_.insert(claim_id).second) {
            throw Error(ErrorCode::IdempotencyInFlight,
                        "the first request with this Idempotency-Key is still being answered")
                .retryAfter(std::chrono::seconds(1));
        }
    }
    struct Leave {
        WorkspaceService& service;
        const std::string& claim_id;
        bool keyed;
        ~Leave() {
            if (!keyed) return;
            const std::lock_guard lock(service.mutex_);
            service.in_flight_.erase(claim_id);
        }
    } const leave{*this, claim_id, keyed};

    if (keyed) {
        if (const std::shared_ptr<Workspace> known = table_.byClaim(claim_id)) {
            if (known->facts().fingerprint != request.fingerprint) throw mismatch();
            replayed = true;
            return {known, {}};
        }
        if (const std::optional<WorkspaceRecord> past = journal_.workspaceByClaim(claim_id)) {
            if (past->fingerprint != request.fingerprint) throw mismatch();
            replayed = true;
            return {nullptr, {}};
        }
    }

    Claims::Wanted wanted;
    OnDemandPools::Found chosen = choosePool(who, request);
    wanted.pool = std::move(chosen.pool);
    wanted.image = chosen.stages;
    wanted.claim_id = claim_id;
    wanted.workspace_id = workspaceIdFor(claim_id);
    wanted.request = &request;
    wanted.tenant = who.tenant;
    wanted.one_shot = one_shot;
    wanted.tell_why = who.atLeast(Role::Operator);
    Claims::Claimed claimed = claims_.claim(wanted);
    const std::shared_ptr<Workspace>& workspace = claimed.workspace;
    try {
        if (request.language) {
            const std::vector<std::string>& known = workspace->agent().hello().languages;
            if (std::find(known.begin(), known.end(), *request.language) == known.end()) {
                throw noLanguage("pool " + wanted.pool->name + " has", *request.language,
                                 {known.begin(), known.end()});
            }
        }
        for (const InlineFile& file : request.files) {
            std::string_view left = file.bytes;
            ask(workspace, file.path, [&] {
                return workspace->agent().writeFile(
                    file.path, std::nullopt, [&left](char* out, std::size_t size) {
                        const std::size_t count = left.copy(out, size);
                        left.remove_prefix(count);
                        return count;
                    });
            });
        }
        if (!request.files.empty()) workspace->wrote(clock_.now());
    } catch (...) {
        endings_.end(workspace, "failed");
        throw;
    }
    if (!keyed && request.patience.stop.stop_requested()) {
        endings_.end(workspace, "deleted");
        throw takenBack();
    }
    return claimed;
}

WorkspaceView WorkspaceService::create(const Principal& who, const WorkspaceRequest& request) {
    bool replayed = false;
    const Claims::Claimed claimed = open(who, request, false, replayed);
    if (!claimed.workspace) {
        explainMissing(who, workspaceIdFor(claimIdFor(who, request, false)));
    }
    WorkspaceView view = claimed.workspace->view();
    if (!replayed) view.claim = claimed.ledger;
    view.replayed = replayed;
    return view;
}

std::shared_ptr<Workspace> WorkspaceService::require(const Principal& who, const std::string& id) {
    std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!workspace || workspace->facts().tenant != who.tenant) explainMissing(who, id);
    return workspace;
}

void WorkspaceService::explainMissing(const Principal& who, const std::string& id) {
    const std::optional<WorkspaceRecord> past = journal_.workspace(id);
    if (past && past->tenant == who.tenant && (past->ended_ms || !table_.find(id))) {
        const std::string at =
            formatRfc3339(past->ended_ms ? fromUnixMillis(*past->ended_ms) : clock_.wall());
        const std::string reason = past->reason.empty() ? "lost" : past->reason;
        throw Error(ErrorCode::Gone, "workspace " + id + " has ended: " + reason)
            .ended(reason, at)
            .hint("open a new one");
    }
    throw Error(ErrorCode::NotFound, "no workspace " + id);
}

WorkspaceView WorkspaceService::get(const Principal& who, const std::string& id) {
    // Operators see every tenant's metadata, never their data.
    if (who.atLeast(Role::Operator)) {
        if (const std::shared_ptr<Workspace> any = table_.find(id)) return any->view();
    }
    return require(who, id)->view();
}

Page<WorkspaceView> WorkspaceService::list(const Principal& who, const ListQuery& query) {
    Page<WorkspaceView> page;
    std::vector<std::shared_ptr<Workspace>> all = table_.all();  // sorted by id
    for (const std::shared_ptr<Workspace>& workspace : all) {
        const WorkspaceFacts& facts = workspace->facts();
        if (facts.tenant != who.tenant && !who.atLeast(Role::Operator)) continue;
        if (facts.id <= query.cursor) continue;
        WorkspaceView view = workspace->view();
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
    return page;
}

WorkspaceView WorkspaceService::patch(const Principal& who, const std::string& id,
                                      const WorkspacePatch& patch) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const WorkspaceFacts& facts = workspace->facts();
    std::optional<TimePoint> expires;
    if (patch.lifetime_from_now) {
        const TimePoint now = clock_.now();
        expires = now + *patch.lifetime_from_now;
        const TimePoint most = facts.created_at + facts.max_lifetime;
        if (patch.lifetime_from_now->count() <= 0) {
            throw Error(ErrorCode::InvalidArgument, "a deadline may not lie in the past")
                .field("/maxLifetimeSeconds", "must be above 0");
        }
        if (facts.max_lifetime.count() > 0 && *expires > most) {
            throw Error(ErrorCode::InvalidArgument,
                        "the pool ends its workspaces after " +
                            std::to_string(facts.max_lifetime.count() / 1000) + " s")
                .field(
                    "/maxLifetimeSeconds",
                    "at most " +
                        std::to_string(std::max<std::int64_t>(
                            0,
                            std::chrono::duration_cast<std::chrono::seconds>(most - now).count())));
        }
    }
    if (patch.labels) {
        workspace->relabel(*patch.labels);
        journal_.labels(id, workspace->view().labels);
    }
    if (patch.idle_timeout || expires) {
        const agent::Deadlines now_in_force = ask(workspace, "", [&] {
            return workspace->agent().setDeadlines(sandboxes_.epoch(), expires, patch.idle_timeout);
        });
        workspace->deadlines(now_in_force.expires_at, now_in_force.idle_timeout);
    }
    return touch(who, id);
}

WorkspaceView WorkspaceService::touch(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    ask(workspace, "", [&] { return workspace->agent().touch(); });
    if (!workspace->touch(clock_.now())) explainMissing(who, id);
    return workspace->view();
}

void WorkspaceService::close(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (workspace && workspace->facts().tenant == who.tenant) {
        endings_.end(workspace, "deleted");
        return;
    }
    const std::optional<WorkspaceRecord> past = journal_.workspace(id);
    if (!past || past->tenant != who.tenant) {
        throw Error(ErrorCode::NotFound, "no workspace " + id);
    }
}

WorkspaceUsage WorkspaceService::usage(const Principal& who, const std::string& id) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    WorkspaceUsage out;
    if (const auto used = runtime_.usage(workspace->facts().sandbox)) {
        out.cpu_ms = used->cpu_ns / 1'000'000;
        out.memory_bytes = used->memory_bytes;
        out.memory_peak_bytes = used->memory_peak_bytes;
        out.processes = used->processes;
    }
    const auto [total, disk] = ask(workspace, "", [&] { return workspace->agent().diskUsage(); });
    out.disk_bytes = disk;
    out.disk_limit_bytes = total;
    return out;
}

broker::EgressReport WorkspaceService::egress(const Principal& who, const std::string& id) {
    return broker_.report(require(who, id)->facts().sandbox);
}

std::vector<std::string> WorkspaceService::languages(const Principal& who, const std::string& id) {
    return require(who, id)->agent().hello().languages;
}

agent::FileStat WorkspaceService::stat(const Principal& who, const std::string& id,
                                       const std::string& path) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    return ask(workspace, path, [&] { return workspace->agent().stat(path); });
}

void WorkspaceService::readFile(const Principal& who, const std::string& id,
                                const std::string& path, std::uint64_t offset, std::uint64_t length,
                                const std::function<void(const agent::FileStat&)>& begin,
                                const std::function<bool(std::string_view)>& chunk) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    ask(workspace, path, [&] { workspace->agent().readFile(path, offset, length, begin, chunk); });
}

agent::FileStat WorkspaceService::writeFile(
    const Principal& who, const std::string& id, const std::string& path,
    std::optional<unsigned> mode, const std::function<std::size_t(char*, std::size_t)>& next) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    return ask(workspace, path, [&] { return workspace->agent().writeFile(path, mode, next); });
}

void WorkspaceService::readArchive(const Principal& who, const std::string& id,
                                   const std::string& path,
                                   const std::function<bool(std::string_view)>& chunk) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    ask(workspace, path, [&] { workspace->agent().readArchive(path, chunk); });
}

agent::ArchiveCount WorkspaceService::writeArchive(
    const Principal& who, const std::string& id, const std::string& path,
    const std::function<std::size_t(char*, std::size_t)>& next) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    return ask(workspace, path, [&] { return workspace->agent().writeArchive(path, next); });
}

agent::FileList WorkspaceService::listFiles(const Principal& who, const std::string& id,
                                            const std::string& path, bool recursive,
                                            std::size_t limit, const std::string& after) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    return ask(workspace, path,
               [&] { return workspace->agent().list(path, recursive, limit, after); });
}

void WorkspaceService::makeDirectory(const Principal& who, const std::string& id,
                                     const std::string& path) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    ask(workspace, path, [&] { workspace->agent().makeDirectory(path); });
}

void WorkspaceService::moveFile(const Principal& who, const std::string& id,
                                const std::string& from, const std::string& to) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    ask(workspace, from, [&] { workspace->agent().move(from, to); });
}

void WorkspaceService::removeFile(const Principal& who, const std::string& id,
                                  const std::string& path, bool recursive) {
    const std::shared_ptr<Workspace> workspace = require(who, id);
    const Busy busy(*workspace, clock_);
    ask(workspace, path, [&] { workspace->agent().remove(path, recursive); });
}

}  // namespace hearth::controller
