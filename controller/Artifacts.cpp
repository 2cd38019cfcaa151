#include "controller/Artifacts.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cerrno>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/LiveExecution.h"
#include "controller/MediaType.h"
#include "controller/SignedLink.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostArtifacts = 256;
constexpr std::size_t kHead = 64;
/// Read for its digest although no copy is kept.
constexpr std::uint64_t kMostDigest = 256ULL << 20U;
constexpr auto kMostTime = std::chrono::seconds(20);
constexpr auto kLinkTime = std::chrono::hours(24);
/// A one shot's copies go an hour after its end, so a link need not say that it opens them longer.
constexpr auto kOneShotLinkTime = std::chrono::hours(1);
constexpr int kThreads = 2;

class Sha256 {
public:
    Sha256() : context_(EVP_MD_CTX_new()) {
        if (context_ == nullptr || EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) != 1) {
            EVP_MD_CTX_free(context_);
            throw std::runtime_error("SHA-256 is not available");
        }
    }
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    ~Sha256() { EVP_MD_CTX_free(context_); }
    void add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
    std::string hex() {
        Digest digest{};
        EVP_DigestFinal_ex(context_, digest.data(), nullptr);
        return toHex(digest);
    }

private:
    EVP_MD_CTX* context_;
};

/// Why nothing was kept, of what the disk said.
std::string reasonOf(int error) {
    return error == ENOSPC || error == EDQUOT ? "disk full" : "error";
}

}  // namespace

struct Artifacts::Budget {
    TimePoint until;
    std::uint64_t digested = 0;  ///< of files that are not kept
};

Artifacts::Artifacts(ArtifactStore& store, metrics::Log& log, const std::string& secret_key,
                     const Clock& clock)
    : store_(store), log_(log), secret_key_(secret_key), clock_(clock) {
    for (int i = 0; i < kThreads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
}

Artifacts::~Artifacts() {
    for (std::jthread& thread : threads_) thread.request_stop();
    wanted_.notify_all();
}

TimePoint Artifacts::settle(TimePoint written_until, const Clock& clock) {
    // Files carry the time of the last tick, so the agent's answer reaches back so far.
    const TimePoint clear = written_until + agent::AgentClient::kChangeSlack;
    while (clock.now() <= clear) {
        std::this_thread::sleep_for(
            std::min<std::chrono::nanoseconds>(clear - clock.now() + std::chrono::microseconds(100),
                                               agent::AgentClient::kChangeSlack));
    }
    return clock.now();
}

void Artifacts::collect(std::shared_ptr<LiveExecution> execution, TimePoint since) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back({std::move(execution), since});
    }
    wanted_.notify_one();
}

void Artifacts::work(const std::stop_token& stop) {
    while (true) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            if (!wanted_.wait(lock, stop, [this] { return !jobs_.empty(); })) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        CollectedArtifacts found;
        try {
            found = run(job);
        } catch (const std::exception& e) {  // the thread's top: the run itself has ended well
            log_.warn("artifacts.failed",
                      {{"execution", job.execution->id()}, {"error", e.what()}});
            found.truncated = true;
        }
        job.execution->collected(std::move(found));
    }
}

CollectedArtifacts Artifacts::run(const Job& job) {
    const LiveExecution& execution = *job.execution;
    Budget budget{clock_.now() + kMostTime};
    const agent::FileChanges changes =
        execution.workspace()->agent().changes(job.since, kMostArtifacts, execution.patterns());
    CollectedArtifacts found;
    found.truncated = changes.more;
    bool lost = false;
    std::string complaint;
    for (const agent::FileStat& stat : changes.items) {
        Artifact artifact;
        try {
            if (!lost) artifact = keep(execution, stat, found.items.size(), budget);
        } catch (const agent::AgentLost&) {  // what was copied before stays
            lost = true;
        }
        if (lost) {
            artifact = Artifact{};
            artifact.path = stat.path;
            artifact.size = stat.size;
            artifact.mime = mediaType(stat.path, "");
            artifact.reason = "lost";
        }
        if (artifact.reason == "disk full" || artifact.reason == "error") {
            complaint = artifact.reason;
        }
        found.items.push_back(std::move(artifact));
    }
    if (!complaint.empty()) {
        log_.warn("artifacts.not_kept", {{"execution", execution.id()}, {"reason", complaint}});
    }
    return found;
}

Artifact Artifacts::keep(const LiveExecution& execution, const agent::FileStat& stat,
                         std::size_t number, Budget& budget) {
    const WorkspaceFacts& facts = execution.workspace()->facts();
    const ArtifactStore::Name name{facts.tenant, facts.id,
                                   execution.id() + "-" + std::to_string(number)};
    Artifact artifact;
    artifact.path = stat.path;
    artifact.size = stat.size;
    artifact.mime = mediaType(stat.path, "");
    if (clock_.now() >= budget.until) {
        artifact.reason = "time";
        return artifact;
    }
    try {
        const std::unique_ptr<ArtifactStore::Copy> kept = store_.begin(name, stat.size);
        if (!kept) {
            artifact.reason = "quota";
            if (stat.size > kMostDigest - std::min(kMostDigest, budget.digested)) return artifact;
        }
        if (!copy(execution.workspace()->agent(), stat, kept.get(), artifact, budget)) {
            return artifact;
        }
        kept->finish();
    } catch (const agent::AgentError&) {
        artifact.reason = "changed";  // removed or replaced since it was found
        return artifact;
    } catch (const Error&) {
        artifact.reason = "time";
        return artifact;
    } catch (const std::system_error& e) {
        artifact.reason = reasonOf(e.code().value());
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

/// Reads the file for its digest and kind, and into `copy` if there is one. True if that is whole
/// and of one moment.
bool Artifacts::copy(agent::AgentClient& agent, const agent::FileStat& stat,
                     ArtifactStore::Copy* copy, Artifact& artifact, Budget& budget) const {
    Sha256 digest;
    std::string head;
    std::string etag;
    std::string trouble;
    std::uint64_t size = 0;
    agent.readFile(
        stat.path, 0, 0, [&](const agent::FileStat& opened) { etag = opened.etag; },
        [&](std::string_view bytes) {
            size += bytes.size();
            if (size > stat.size) {
                trouble = "changed";
            } else if (clock_.now() >= budget.until) {
                trouble = "time";
            } else if (copy != nullptr && !copy->add(bytes)) {
                trouble = reasonOf(errno);
            }
            if (!trouble.empty()) return false;
            digest.add(bytes);
            head.append(bytes.substr(0, kHead - std::min(kHead, head.size())));
            return true;
        });
    artifact.mime = mediaType(stat.path, head);
    if (copy == nullptr) budget.digested += size;
    if (trouble.empty() && (size < stat.size || agent.stat(stat.path).etag != etag)) {
        trouble = "changed";
    }
    if (trouble.empty()) artifact.sha256 = digest.hex();
    if (artifact.reason.empty()) artifact.reason = trouble;
    return artifact.reason.empty();
}

}  // namespace hearth::controller
