#include "controller/claims/WorkspaceOpener.h"

#include <algorithm>

#include "base/Error.h"
#include "controller/claims/ClaimWait.h"
#include "controller/contract/RequestLimits.h"

namespace hearth::controller {
namespace {

Error mismatch() {
    return Error(ErrorCode::IdempotencyMismatch,
                 "the Idempotency-Key was used with another request")
        .hint("use a new key for a new request");
}

}  // namespace

WorkspaceOpener::WorkspaceOpener(WorkspaceAccess& access, WorkspaceTable& table,
                                 PoolChooser& chooser, Claimer& claims,
                                 WorkspaceTerminator& endings, const KeyedIds& ids,
                                 const History& history)
    : access_(access),
      table_(table),
      chooser_(chooser),
      claims_(claims),
      endings_(endings),
      ids_(ids),
      history_(history) {}

template <typename Claim>
auto WorkspaceOpener::inSomePool(const Principal& who, const WorkspaceRequest& request,
                                 ClaimWait& kept, Claim claim) {
    while (true) {
        if (!kept.pool) {
            OnDemandPools::Found chosen = chooser_.choose(who, request, kept.without);
            kept.pool = std::move(chosen.pool);
            kept.image = chosen.stages;
        }
        try {
            return claim();
        } catch (const NoLanguage&) {
            // The chosen pool's languages were not known before. Another pool may have it.
            if (request.pool) throw;
            kept.without.insert(kept.pool->name);
            kept.chooseAgain();
        }
    }
}

template <typename Open>
auto WorkspaceOpener::accounted(const Principal& who, const WorkspaceRequest& request, Open open) {
    const TimePoint since =
        request.started_at == TimePoint{} ? history_.clock.now() : request.started_at;
    // A claim without a thread keeps its state here until it runs again.
    ClaimWait own;
    ClaimWait& kept = request.patience.wait ? *request.patience.wait : own;
    try {
        auto opened = open(kept);
        kept.forget();
        return opened;
    } catch (const MustWait&) {  // the claim runs again later
        if (!request.patience.wait) table_.quotas().unadmit(who.tenant, kept.admitted);
        throw;
    } catch (const std::exception& e) {
        const std::string pool = kept.pool ? kept.pool->name : "";
        kept.forget();
        if (request.patience.stop.stop_requested()) {
            account_.cancelled(who, pool, since);
        } else {
            account_.unserved(who, pool, since, e);
        }
        throw;
    }
}

Claimer::Claimed WorkspaceOpener::open(const Principal& who, const WorkspaceRequest& request,
                                       bool one_shot, bool& replayed) {
    Claimer::Claimed claimed = accounted(who, request, [&](ClaimWait& kept) {
        return openOnce(who, request, kept, one_shot, replayed);
    });
    if (!replayed) account_.served(claimed, who.trace);
    return claimed;
}

Claimer::Claimed WorkspaceOpener::openOnce(const Principal& who, const WorkspaceRequest& request,
                                           ClaimWait& kept, bool one_shot, bool& replayed) {
    replayed = false;
    checkRequest(request);
    if (kept.claim_id.empty()) kept.claim_id = ids_.claim(who, request.idempotency_key, one_shot);
    const std::string claim_id = kept.claim_id;
    const bool keyed = !request.idempotency_key.empty();
    if (keyed && !kept.in_flight) kept.in_flight = keys_.take(claim_id);

    if (keyed) {
        if (const std::shared_ptr<Workspace> known = table_.byClaim(claim_id)) {
            if (known->facts().fingerprint != request.fingerprint) throw mismatch();
            replayed = true;
            return {known, {}};
        }
        if (const std::optional<WorkspaceRecord> past =
                history_.journal.workspaceByClaim(claim_id)) {
            if (past->fingerprint != request.fingerprint) throw mismatch();
            if (!past->ended_ms && table_.expectsClaim(claim_id)) throw silentError(past->id);
            replayed = true;
            return {nullptr, {}};
        }
        if (table_.expectsUnknown()) throw unknownClaimError();
    }

    history_.journal.requireRoom(who.tenant);
    Claimer::Claimed claimed = inSomePool(who, request, kept, [&] {
        Claimer::Wanted wanted = wantedOf(who, request, kept, kept.claim_id);
        wanted.one_shot = one_shot;
        return claims_.claim(wanted, kept);
    });
    const std::shared_ptr<Workspace>& workspace = claimed.workspace;
    try {
        writeFiles(workspace, request);
    } catch (...) {
        endings_.end(workspace, EndReason::Failed, who.trace);
        throw;
    }
    if (!keyed && request.patience.stop.stop_requested()) {
        endings_.end(workspace, EndReason::Deleted, who.trace);
        throw takenBack();
    }
    return claimed;
}

Claimer::Wanted WorkspaceOpener::wantedOf(const Principal& who, const WorkspaceRequest& request,
                                          const ClaimWait& kept,
                                          const std::string& claim_id) const {
    Claimer::Wanted wanted;
    wanted.pool = kept.pool;
    wanted.image = kept.image;
    wanted.claim_id = claim_id;
    wanted.workspace_id = ids_.workspace(claim_id);
    wanted.request = &request;
    wanted.tenant = who.tenant;
    wanted.trace = history_.tracer.within(who.trace);
    wanted.tell_why = who.atLeast(Role::Operator);
    return wanted;
}

void WorkspaceOpener::writeFiles(const std::shared_ptr<Workspace>& workspace,
                                 const WorkspaceRequest& request) {
    for (const InlineFile& file : request.files) {
        std::string_view left = file.bytes;
        access_.ask(workspace, file.path, [&] {
            return workspace->agent()->writeFile(file.path, std::nullopt,
                                                 [&left](char* out, std::size_t size) {
                                                     const std::size_t count = left.copy(out, size);
                                                     left.remove_prefix(count);
                                                     return count;
                                                 });
        });
    }
    if (!request.files.empty()) workspace->wrote(history_.clock.now());
}

std::vector<Claimer::Claimed> WorkspaceOpener::openAll(const Principal& who,
                                                       const WorkspaceRequest& request,
                                                       std::size_t count, bool& replayed,
                                                       std::string& ended) {
    return accounted(who, request, [&](ClaimWait& kept) {
        while (kept.claim_ids.size() < count) {
            kept.claim_ids.push_back(
                ids_.claimOf(who, request.idempotency_key, kept.claim_ids.size()));
        }
        return openAllOnce(who, request, kept, replayed, ended);
    });
}

std::vector<Claimer::Claimed> WorkspaceOpener::openAllOnce(const Principal& who,
                                                           const WorkspaceRequest& request,
                                                           ClaimWait& kept, bool& replayed,
                                                           std::string& ended) {
    replayed = false;
    checkRequest(request);
    const bool keyed = !request.idempotency_key.empty();
    std::vector<std::shared_ptr<Workspace>> known(kept.claim_ids.size());
    if (keyed) {
        if (!kept.in_flight) kept.in_flight = keys_.take(kept.claim_ids.front());
        std::size_t there = 0;
        for (std::size_t i = 0; i < known.size(); ++i) {
            const std::string& claim_id = kept.claim_ids[i];
            known[i] = table_.byClaim(claim_id);
            if (known[i]) {
                if (known[i]->facts().fingerprint != request.fingerprint) throw mismatch();
                ++there;
                continue;
            }
            const std::optional<WorkspaceRecord> past = history_.journal.workspaceByClaim(claim_id);
            if (!past) continue;
            if (past->fingerprint != request.fingerprint) throw mismatch();
            if (!past->ended_ms && table_.expectsClaim(claim_id)) throw silentError(past->id);
            ended = past->id;
        }
        if (!ended.empty()) return {};
        if (there == known.size()) {
            replayed = true;
            std::vector<Claimer::Claimed> all;
            all.reserve(known.size());
            for (std::shared_ptr<Workspace>& one : known) all.push_back({std::move(one), {}});
            return all;
        }
        if (table_.expectsUnknown()) throw unknownClaimError();
    }
    history_.journal.requireRoom(who.tenant);
    return inSomePool(who, request, kept, [&] { return claimMissing(who, request, kept, known); });
}

std::vector<Claimer::Claimed> WorkspaceOpener::claimMissing(
    const Principal& who, const WorkspaceRequest& request, ClaimWait& kept,
    std::vector<std::shared_ptr<Workspace>> known) {
    std::vector<Claimer::Wanted> wanted;
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (!known[i]) wanted.push_back(wantedOf(who, request, kept, kept.claim_ids[i]));
    }
    std::vector<Claimer::Claimed> made = claims_.claimAll(wanted, kept);
    try {
        for (const Claimer::Claimed& claimed : made) writeFiles(claimed.workspace, request);
        if (request.idempotency_key.empty() && request.patience.stop.stop_requested()) {
            throw takenBack();
        }
    } catch (...) {
        for (const Claimer::Claimed& claimed : made) {
            endings_.end(claimed.workspace, EndReason::Failed, who.trace);
        }
        throw;
    }
    for (const Claimer::Claimed& claimed : made) account_.served(claimed, who.trace);
    std::vector<Claimer::Claimed> all;
    std::size_t next = 0;
    for (std::shared_ptr<Workspace>& one : known) {
        if (one) {
            all.push_back({std::move(one), {}});
        } else {
            all.push_back(std::move(made[next++]));
        }
    }
    return all;
}

}  // namespace hearth::controller
