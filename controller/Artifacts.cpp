#include "controller/Artifacts.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/Journal.h"
#include "controller/LiveExecution.h"
#include "controller/MediaType.h"
#include "controller/WorkspaceTable.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostArtifacts = 256;
constexpr std::size_t kHead = 64;
/// Read for its digest although no copy is kept.
constexpr std::uint64_t kMostDigest = 256ULL << 20U;
constexpr auto kMostTime = std::chrono::seconds(20);
constexpr auto kKeep = std::chrono::hours(1);
constexpr auto kLinkTime = std::chrono::hours(24);
constexpr auto kPruneEvery = std::chrono::seconds(60);
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

std::uint64_t sizeOf(const std::filesystem::path& folder) {
    std::uint64_t total = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.is_regular_file()) total += entry.file_size();
    }
    return total;
}

}  // namespace

/// One copy while it is made; gone again unless finished.
class Artifacts::Copy {
public:
    explicit Copy(std::string path)
        : path_(std::move(path)),
          fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
        if (!fd_) throwErrno("open", path_);
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    ~Copy() {
        if (!finished_) ::unlink(path_.c_str());
    }
    /// False with errno.
    bool add(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    void finish() { finished_ = true; }

private:
    const std::string path_;
    const Fd fd_;
    bool finished_ = false;
};

Artifacts::Artifacts(std::string directory, WorkspaceTable& table, Journal& journal,
                     metrics::Log& log, const std::string& secret_key, const Clock& clock,
                     Limits limits)
    : directory_(std::move(directory)),
      table_(table),
      journal_(journal),
      log_(log),
      secret_key_(secret_key),
      clock_(clock),
      limits_(limits) {
    std::filesystem::create_directories(directory_);
    countKept();
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
        std::vector<Artifact> found;
        try {
            found = run(job);
        } catch (const std::exception& e) {  // the thread's top: the run itself has ended well
            log_.warn("artifacts.failed",
                      {{"execution", job.execution->id()}, {"error", e.what()}});
        }
        job.execution->collected(std::move(found));
    }
}

std::vector<Artifact> Artifacts::run(const Job& job) {
    const std::shared_ptr<Workspace>& workspace = job.execution->workspace();
    const WorkspaceFacts& facts = workspace->facts();
    agent::AgentClient& agent = workspace->agent();
    const TimePoint until = clock_.now() + kMostTime;
    const std::string place = folder(facts.tenant, facts.id);
    std::uint64_t digested = 0;
    std::vector<Artifact> all;
    for (const agent::FileStat& stat :
         agent.changes(job.since, kMostArtifacts, job.execution->facts().collect)) {
        Artifact artifact;
        artifact.path = stat.path;
        artifact.size = stat.size;
        artifact.mime = mediaType(stat.path, "");
        const bool keep = reserve(facts.tenant, facts.id, stat.size);
        if (!keep) artifact.reason = "quota";
        const bool late = clock_.now() >= until;
        if (late) artifact.reason = "time";
        if (late || (!keep && digested + stat.size > kMostDigest)) {
            if (keep) release(facts.tenant, facts.id, stat.size);
            all.push_back(std::move(artifact));
            continue;
        }
        const std::string name = job.execution->id() + "-" + std::to_string(all.size());
        bool kept = false;
        try {
            std::unique_ptr<Copy> copy;
            if (keep) {
                std::filesystem::create_directories(directory_ + "/" + place);
                copy = std::make_unique<Copy>(directory_ + "/" + place + "/" + name);
            }
            Sha256 digest;
            std::string head;
            std::uint64_t size = 0;
            agent.readFile(
                stat.path, 0, 0, [](const agent::FileStat&) {},
                [&](std::string_view bytes) {
                    size += bytes.size();
                    if (size > stat.size) artifact.reason = "changed";
                    if (clock_.now() >= until) artifact.reason = "time";
                    if (copy && artifact.reason.empty() && !copy->add(bytes)) {
                        artifact.reason =
                            errno == ENOSPC || errno == EDQUOT ? "disk full" : "error";
                    }
                    if (copy && !artifact.reason.empty()) return false;
                    digest.add(bytes);
                    head.append(bytes.substr(0, kHead - std::min(kHead, head.size())));
                    return size <= stat.size && clock_.now() < until;
                });
            artifact.mime = mediaType(stat.path, head);
            if (size < stat.size && artifact.reason.empty()) artifact.reason = "changed";
            if (size == stat.size) artifact.sha256 = digest.hex();
            if (!copy) digested += size;
            if (copy && artifact.reason.empty()) {
                copy->finish();
                kept = true;
            }
        } catch (const agent::AgentError&) {
            artifact.reason = "changed";  // removed or replaced since it was found
        } catch (const Error&) {
            artifact.reason = "time";
        } catch (const agent::AgentLost&) {
            if (keep) release(facts.tenant, facts.id, stat.size);
            throw;
        } catch (const std::system_error& e) {
            artifact.reason = e.code() == std::errc::no_space_on_device ? "disk full" : "error";
        }
        if (kept) {
            const std::int64_t now = toUnixMillis(clock_.wall());
            const SignedLink link{facts.tenant, facts.id, stat.path, name,
                                  now / 1000 + std::chrono::seconds(kLinkTime).count()};
            artifact.url = linkPath(secret_key_, link);
            artifact.expires_ms = link.expires_unix * 1000;
        } else {
            if (keep) release(facts.tenant, facts.id, stat.size);
            if (artifact.reason == "disk full" || artifact.reason == "error") {
                log_.warn("artifact.not_kept",
                          {{"execution", job.execution->id()}, {"reason", artifact.reason}});
            }
        }
        all.push_back(std::move(artifact));
    }
    return all;
}

/// Tenants' names are theirs, so a folder is named by a digest.
std::string Artifacts::folder(const std::string& tenant, const std::string& workspace) const {
    return toHex(sha256(tenant)).substr(0, 16) + "/" + workspace;
}

bool Artifacts::reserve(const std::string& tenant, const std::string& workspace,
                        std::uint64_t bytes) {
    const std::string place = folder(tenant, workspace);
    const std::string owner = place.substr(0, place.find('/') + 1);
    const std::lock_guard lock(mutex_);
    std::uint64_t all = 0;
    std::uint64_t theirs = 0;
    for (const auto& [name, size] : kept_) {
        all += size;
        if (name.starts_with(owner)) theirs += size;
    }
    std::uint64_t& here = kept_[place];
    if (bytes > limits_.workspace || here > limits_.workspace - bytes ||
        theirs > limits_.tenant - std::min(limits_.tenant, bytes) ||
        all > limits_.all - std::min(limits_.all, bytes)) {
        if (here == 0) kept_.erase(place);
        return false;
    }
    here += bytes;
    return true;
}

void Artifacts::release(const std::string& tenant, const std::string& workspace,
                        std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    std::uint64_t& here = kept_[folder(tenant, workspace)];
    here -= std::min(here, bytes);
}

void Artifacts::countKept() {
    const std::lock_guard lock(mutex_);
    for (const auto& owner : std::filesystem::directory_iterator(directory_)) {
        for (const auto& place : std::filesystem::directory_iterator(owner.path())) {
            const std::string name =
                owner.path().filename().string() + "/" + place.path().filename().string();
            kept_[name] = sizeOf(place.path());
        }
    }
}

Artifacts::Kept Artifacts::open(const SignedLink& link) const {
    const std::string path =
        directory_ + "/" + folder(link.tenant, link.workspace) + "/" + link.artifact;
    Kept kept;
    kept.fd = Fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    if (!kept.fd || ::fstat(kept.fd.get(), &st) != 0) {
        throw Error(ErrorCode::Gone, "the artifact is no longer kept")
            .hint("Artifacts are kept for an hour after their workspace's end");
    }
    kept.size = static_cast<std::uint64_t>(st.st_size);
    return kept;
}

ReconcileResult Artifacts::prune() {
    const std::int64_t now = toUnixMillis(clock_.wall());
    const std::int64_t keep = std::chrono::milliseconds(kKeep).count();
    std::vector<std::string> places;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, size] : kept_) places.push_back(name);
    }
    for (const std::string& place : places) {
        const std::string workspace = place.substr(place.find('/') + 1);
        if (table_.find(workspace)) continue;
        const std::string path = directory_ + "/" + place;
        const std::optional<WorkspaceRecord> past = journal_.workspace(workspace);
        struct stat st {};
        const bool there = ::stat(path.c_str(), &st) == 0;
        // Without a record its last change stands for the end.
        const std::int64_t ended = past && past->ended_ms
                                       ? *past->ended_ms
                                       : static_cast<std::int64_t>(st.st_mtime) * 1000;
        if (there && now < ended + keep) continue;
        std::error_code failure;
        std::filesystem::remove_all(path, failure);
        if (failure) {
            log_.warn("artifacts.not_removed",
                      {{"workspace", workspace}, {"error", failure.message()}});
            continue;
        }
        const std::lock_guard lock(mutex_);
        kept_.erase(place);
    }
    return ReconcileResult::after(kPruneEvery);
}

}  // namespace hearth::controller
