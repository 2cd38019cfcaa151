#include "controller/executions/ArtifactCollector.h"

#include <algorithm>
#include <cerrno>

#include "base/Digest.h"
#include "base/Error.h"
#include "controller/executions/LiveExecution.h"
#include "controller/executions/MediaType.h"
#include "controller/executions/SignedLink.h"

namespace hearth::controller {
namespace {

/// The most bytes of all names of one execution.
constexpr std::size_t kMostNameBytes = 32U << 10U;
constexpr std::size_t kMostArtifacts = 256;
constexpr std::size_t kHead = 64;
/// The most bytes that are read only for a digest, without keeping a copy.
constexpr std::uint64_t kMostDigest = 256ULL << 20U;
constexpr auto kMostTime = std::chrono::seconds(20);
constexpr auto kLinkTime = std::chrono::hours(24);
/// A one shot's copies are removed an hour after its end, so its links are not valid for longer.
constexpr auto kOneShotLinkTime = std::chrono::hours(1);

/// Returns the reason why nothing was kept, from the disk's errno.
NotKept reasonOf(int error) {
    return error == ENOSPC || error == EDQUOT ? NotKept::DiskFull : NotKept::Error;
}

}  // namespace

struct ArtifactCollector::Budget {
    TimePoint until;
    std::uint64_t digested = 0;  ///< bytes of files that are not kept

    /// The time left for the next call to the agent.
    std::chrono::milliseconds left(const Clock& clock) const {
        const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now());
        return std::clamp<std::chrono::milliseconds>(rest, {}, agent::kDataPatience);
    }
};

TimePoint ArtifactCollector::settle(TimePoint written_until, const Clock& clock) {
    // Files carry the time of the kernel's last tick, and nothing reports the next one.
    const auto left = written_until + agent::AgentClient::kChangeSlack - clock.now();
    if (left.count() >= 0) std::this_thread::sleep_for(left + std::chrono::microseconds(100));
    return clock.now();
}

CollectedArtifacts ArtifactCollector::collect(const LiveExecution& execution) {
    Budget budget{clock_.now() + kMostTime};  // the search for the files is part of it
    const agent::FileChanges changes = execution.workspace()->agent()->changes(
        execution.facts().changed_since, kMostArtifacts, execution.patterns(), budget.left(clock_));
    CollectedArtifacts found;
    found.truncated = changes.more;
    bool lost = false;
    std::optional<NotKept> complaint;
    std::size_t names = 0;
    for (const agent::FileStat& stat : changes.items) {
        // Each name is in the record three times, and in every list of executions.
        names += toUtf8(stat.path).size();
        if (names > kMostNameBytes) {
            found.truncated = true;
            break;
        }
        Artifact artifact;
        try {
            if (!lost) artifact = keep(execution, stat, found.items.size(), budget);
        } catch (const agent::AgentLost&) {  // files copied before remain
            lost = true;
        }
        if (lost) {
            artifact = Artifact{};
            artifact.path = stat.path;
            artifact.size = stat.size;
            artifact.mime = mediaType(stat.path, "");
            artifact.not_kept = NotKept::Lost;
        }
        if (artifact.not_kept == NotKept::DiskFull || artifact.not_kept == NotKept::Error) {
            complaint = artifact.not_kept;
        }
        found.items.push_back(std::move(artifact));
    }
    if (complaint) {
        log_.warn("artifacts.not_kept",
                  {{"execution", execution.id()}, {"reason", kNotKept.of(*complaint)}});
    }
    return found;
}

Artifact ArtifactCollector::keep(const LiveExecution& execution, const agent::FileStat& stat,
                                 std::size_t number, Budget& budget) {
    const WorkspaceFacts& facts = execution.workspace()->facts();
    const ArtifactStore::Name name{facts.tenant, facts.id,
                                   execution.id() + "-" + std::to_string(number)};
    Artifact artifact;
    artifact.path = stat.path;
    artifact.size = stat.size;
    artifact.mime = mediaType(stat.path, "");
    if (clock_.now() >= budget.until) {
        artifact.not_kept = NotKept::Time;
        return artifact;
    }
    try {
        const std::unique_ptr<ArtifactStore::Copy> kept = store_.begin(name, stat.size);
        if (!kept) {
            artifact.not_kept = NotKept::Quota;
            if (stat.size > kMostDigest - std::min(kMostDigest, budget.digested)) return artifact;
        }
        if (!copy(*execution.workspace()->agent(), stat, kept.get(), artifact, budget)) {
            return artifact;
        }
        kept->finish();
    } catch (const agent::AgentError&) {
        artifact.not_kept = NotKept::Changed;  // removed or replaced since it was found
        return artifact;
    } catch (const Error&) {
        artifact.not_kept = NotKept::Time;
        return artifact;
    } catch (const std::system_error& e) {
        artifact.not_kept = reasonOf(e.code().value());
        return artifact;
    }
    const std::int64_t time =
        std::chrono::seconds(facts.one_shot ? kOneShotLinkTime : kLinkTime).count();
    const SignedLink link{facts.tenant, facts.id, stat.path, name.name,
                          toUnixMillis(clock_.wall()) / 1000 + time};
    artifact.url = linkPath(secret_key_, link);
    artifact.expires_ms = link.expires_unix * 1000;
    return artifact;
}

/// Reads the file for its digest and media type, and into `copy` if there is one. True if that is
/// complete and the file did not change meanwhile.
bool ArtifactCollector::copy(agent::AgentClient& agent, const agent::FileStat& stat,
                             ArtifactStore::Copy* copy, Artifact& artifact, Budget& budget) const {
    RunningDigest digest;
    std::string head;
    std::string etag;
    std::optional<NotKept> trouble;
    std::uint64_t size = 0;
    agent.readFile(
        stat.path, 0, 0, [&](const agent::FileStat& opened) { etag = opened.etag; },
        [&](std::string_view bytes) {
            size += bytes.size();
            if (size > stat.size) {
                trouble = NotKept::Changed;
            } else if (clock_.now() >= budget.until) {
                trouble = NotKept::Time;
            } else if (copy != nullptr && !copy->add(bytes)) {
                trouble = reasonOf(errno);
            }
            if (trouble) return false;
            digest.add(bytes);
            head.append(bytes.substr(0, kHead - std::min(kHead, head.size())));
            return true;
        },
        std::chrono::ceil<std::chrono::milliseconds>(budget.until - clock_.now()));
    artifact.mime = mediaType(stat.path, head);
    if (copy == nullptr) budget.digested += size;
    // A file that came slowly up to its end is late, too: its agent gets no further call.
    if (!trouble && clock_.now() >= budget.until) trouble = NotKept::Time;
    if (!trouble && (size < stat.size || agent.stat(stat.path, budget.left(clock_)).etag != etag)) {
        trouble = NotKept::Changed;
    }
    if (!trouble) artifact.sha256 = digest.hex();
    if (!artifact.not_kept) artifact.not_kept = trouble;
    return !artifact.not_kept;
}

}  // namespace hearth::controller
