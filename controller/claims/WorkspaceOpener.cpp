#include "controller/claims/WorkspaceOpener.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/Error.h"
#include "controller/contract/RequestLimits.h"

namespace hearth::controller {
namespace {

Error mismatch() {
    return Error(ErrorCode::IdempotencyMismatch,
                 "the Idempotency-Key was used with another request")
        .hint("use a new key for a new request");
}

}  // namespace

/// Records how a claim ends; as cancelled if nobody else does.
class WorkspaceOpener::Account {
public:
    Account(const ClaimAccount& account, const Principal& who, TimePoint since)
        : account_(account), who_(who), since_(since) {}
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() {
        if (!told_) account_.cancelled(who_, pool, since_);
    }

    void served(const Opened& opened) {
        told_ = true;
        if (opened.replayed) return;
        for (const Claimer::Claimed& claimed : opened.all) {
            if (claimed.bound != TimePoint{}) account_.served(claimed, who_.trace);
        }
    }
    void unserved(const std::exception& why) {
        told_ = true;
        account_.unserved(who_, pool, since_, why);
    }

    std::string pool;  ///< that it claims in; empty: none was found yet

private:
    const ClaimAccount& account_;
    const Principal& who_;
    const TimePoint since_;
    bool told_ = false;
};

WorkspaceOpener::WorkspaceOpener(WorkspaceAccess& access, WorkspaceTable& table,
                                 PoolChooser& chooser, Claimer& claimer,
                                 WorkspaceTerminator& terminator, const KeyedIds& ids,
                                 const History& history)
    : access_(access),
      table_(table),
      chooser_(chooser),
      claimer_(claimer),
      terminator_(terminator),
      ids_(ids),
      history_(history) {}

Task<WorkspaceOpener::Opened> WorkspaceOpener::openAll(const Principal& who,
                                                       const WorkspaceRequest& request,
                                                       std::size_t count) {
    std::vector<std::string> ids;
    while (ids.size() < count)
        ids.push_back(ids_.claimOf(who, request.idempotency_key, ids.size()));
    return openAll(who, request, std::move(ids), false);
}

Task<WorkspaceOpener::Opened> WorkspaceOpener::openAll(const Principal& who,
                                                       const WorkspaceRequest& request,
                                                       std::vector<std::string> claim_ids,
                                                       bool one_shot) {
    const TimePoint since =
        request.started_at == TimePoint{} ? history_.clock.now() : request.started_at;
    Account account(account_, who, since);
    try {
        Task<Opened> opening = openOrFind(who, request, std::move(claim_ids), one_shot, account);
        Opened opened = co_await opening;
        account.served(opened);
        co_return opened;
    } catch (const std::exception& e) {
        account.unserved(e);
        throw;
    }
}

Task<WorkspaceOpener::Opened> WorkspaceOpener::openOrFind(const Principal& who,
                                                          const WorkspaceRequest& request,
                                                          std::vector<std::string> claim_ids,
                                                          bool one_shot, Account& account) {
    checkRequest(request);
    const bool keyed = !request.idempotency_key.empty();
    const std::shared_ptr<void> in_flight = keyed ? keys_.take(claim_ids.front()) : nullptr;
    Opened opened;
    std::vector<WorkspacePtr> found(claim_ids.size());
    if (keyed) {
        found = known(request, claim_ids, opened);
        if (opened.replayed) co_return opened;
    }
    history_.journal.requireRoom(who.tenant);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) missing.push_back(claim_ids[i]);
    }
    Task<std::vector<Claimer::Claimed>> claiming =
        claim(who, request, std::move(missing), one_shot, account);
    std::vector<Claimer::Claimed> claimed = co_await claiming;
    writeFiles(claimed, request, who.trace);
    auto next = claimed.begin();
    for (WorkspacePtr& one : found) {
        opened.all.push_back(one ? Claimer::Claimed{std::move(one), {}, {}} : std::move(*next++));
    }
    co_return opened;
}

std::vector<WorkspaceOpener::WorkspacePtr> WorkspaceOpener::known(
    const WorkspaceRequest& request, const std::vector<std::string>& claim_ids, Opened& opened) {
    std::vector<WorkspacePtr> found;
    for (const std::string& claim_id : claim_ids) {
        found.push_back(table_.byClaim(claim_id));
        if (found.back()) {
            if (found.back()->facts().fingerprint != request.fingerprint) throw mismatch();
            continue;
        }
        const std::optional<WorkspaceRecord> past = history_.journal.workspaceByClaim(claim_id);
        if (!past) continue;
        if (past->fingerprint != request.fingerprint) throw mismatch();
        if (!past->ended_ms && table_.expectsClaim(claim_id)) throw silentError(past->id);
        opened.ended = past->id;
    }
    const bool whole = std::all_of(found.begin(), found.end(),
                                   [](const WorkspacePtr& one) { return one != nullptr; });
    opened.replayed = whole || !opened.ended.empty();
    if (whole) {
        for (const WorkspacePtr& one : found) opened.all.push_back({one, {}, {}});
    }
    if (!opened.replayed && table_.expectsUnknown()) throw unknownClaimError();
    return found;
}

Task<std::vector<Claimer::Claimed>> WorkspaceOpener::claim(const Principal& who,
                                                           const WorkspaceRequest& request,
                                                           std::vector<std::string> claim_ids,
                                                           bool one_shot, Account& account) {
    std::set<std::string> without;  // pools that proved to lack its language
    while (true) {
        Task<OnDemandPools::Found> choice = chooser_.choose(who, request, without);
        const OnDemandPools::Found found = co_await choice;
        account.pool = found.pool->name;
        std::vector<Claimer::Wanted> all;
        for (const std::string& claim_id : claim_ids) {
            all.push_back(wantedOf(who, request, found, claim_id));
            all.back().one_shot = one_shot;
        }
        Task<std::vector<Claimer::Claimed>> claiming = claimer_.claim(std::move(all));
        try {
            co_return co_await claiming;
        } catch (const NoLanguage&) {
            // The chosen pool's languages were not known before. Another pool may have it.
            if (request.pool) throw;
            without.insert(found.pool->name);
            account.pool.clear();
        }
    }
}

Claimer::Wanted WorkspaceOpener::wantedOf(const Principal& who, const WorkspaceRequest& request,
                                          const OnDemandPools::Found& found,
                                          const std::string& claim_id) const {
    Claimer::Wanted wanted;
    wanted.pool = found.pool;
    wanted.image = found.stages;
    wanted.claim_id = claim_id;
    wanted.workspace_id = ids_.workspace(claim_id);
    wanted.request = &request;
    wanted.tenant = who.tenant;
    wanted.trace = history_.tracer.within(who.trace);
    wanted.tell_why = who.atLeast(Role::Operator);
    return wanted;
}

void WorkspaceOpener::writeFiles(const std::vector<Claimer::Claimed>& claimed,
                                 const WorkspaceRequest& request, const TraceContext& trace) {
    try {
        for (const Claimer::Claimed& each : claimed) {
            const WorkspacePtr& workspace = each.workspace;
            for (const InlineFile& file : request.files) {
                std::string_view left = file.bytes;
                access_.ask(workspace, file.path, [&] {
                    return workspace->agent()->writeFile(
                        file.path, std::nullopt, [&left](char* out, std::size_t size) {
                            const std::size_t count = left.copy(out, size);
                            left.remove_prefix(count);
                            return count;
                        });
                });
            }
            if (!request.files.empty()) workspace->wrote(history_.clock.now());
        }
    } catch (...) {
        for (const Claimer::Claimed& each : claimed) {
            terminator_.end(each.workspace, EndReason::Failed, trace);
        }
        throw;
    }
}

}  // namespace hearth::controller
