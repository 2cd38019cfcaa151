#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "base/Texts.h"
#include "base/task/Task.h"
#include "controller/contract/ClaimLedger.h"
#include "controller/contract/Principal.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/egress/policy/WorkspaceEgress.h"
#include "controller/spec/ClaimLimits.h"
#include "controller/spec/GpuSpec.h"
#include "pool/agent/connection/FileTypes.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

struct InlineFile {
    std::string path;
    std::string bytes;
};

/// A parsed `POST /v1/workspaces` or `workspace_open`.
struct WorkspaceRequest {
    std::optional<std::string> pool;  ///< none: the default pool
    std::optional<std::string> name;
    std::optional<std::string> image;            ///< selects or narrows a pool, never widens it
    std::optional<std::string> language;         ///< likewise
    std::optional<egress::NetworkMode> network;  ///< at most the pool's
    /// With Egress: the part of the pool's list that the workspace may reach; none: the whole list.
    std::optional<std::vector<std::string>> allow;
    ClaimLimits limits;          ///< select or narrow a pool, never widen it
    std::optional<GpuWish> gpu;  ///< selects a pool; none: preferably one without GPUs
    /// Credentials for requests to the outside (egress::readClaimCredentials); null: none. Their
    /// values are never logged, shown, or stored in the clear.
    Json credentials;
    std::map<std::string, std::string> labels;
    std::map<std::string, std::string> env;
    std::map<std::string, std::string> secrets;  ///< never logged, stored or shown
    std::vector<InlineFile> files;
    std::optional<std::chrono::milliseconds> idle_timeout;  ///< at most the pool's lifetime
    std::optional<std::chrono::milliseconds> max_lifetime;  ///< at most the pool's
    std::string idempotency_key;                            ///< empty: none
    std::string fingerprint;                                ///< the body's; needed with a key
    TimePoint started_at{};  ///< when the request came; the ledger starts here
    /// The longest wait for its image, and then for a sandbox, if the server would wait longer.
    std::chrono::milliseconds patience = std::chrono::hours(1);
};

/// Paused: idle and frozen until the next call; otherwise the same as Active.
enum class WorkspacePhase : std::uint8_t { Pending, Active, Paused, Reclaiming, Gone };
inline constexpr Texts<WorkspacePhase, 5> kWorkspacePhases{
    {"Pending", "Active", "Paused", "Reclaiming", "Gone"}};
inline bool isOpen(WorkspacePhase phase) {
    return phase == WorkspacePhase::Active || phase == WorkspacePhase::Paused;
}

struct WorkspaceView {
    std::string id;
    std::string pool;
    std::string sandbox_id;
    WorkspacePhase phase = WorkspacePhase::Pending;
    std::string tenant;
    std::optional<std::string> name;
    std::map<std::string, std::string> labels;
    std::string root = "/workspace";
    std::string created_at;
    std::string last_active_at;
    std::optional<std::string> idle_expires_at;  ///< none while something runs, or if it pauses
    std::optional<std::string> expires_at;
    egress::NetworkMode network = egress::NetworkMode::None;
    std::vector<Json> credentials;  ///< credentials added to outside requests, without their values
    pool::SandboxLimits limits;
    std::vector<std::string> gpus;     ///< uuids of its devices
    std::optional<ClaimLedger> claim;  ///< in the answer to create only
    bool replayed = false;             ///< true if it answered an earlier request with the same key
    bool one_shot = false;             ///< it ends with its one execution
};

struct WorkspacePatch {
    std::optional<std::map<std::string, std::optional<std::string>>> labels;  ///< nullopt removes
    /// Counted from now; the end is never in the past and never later than the pool's maximum.
    std::optional<std::chrono::milliseconds> idle_timeout;
    std::optional<std::chrono::milliseconds> lifetime_from_now;
};

struct ListQuery {
    std::size_t limit = 100;  ///< 1 to 1,000
    std::string cursor;
    std::vector<std::pair<std::string, std::string>> labels;
};

template <typename T>
struct Page {
    std::vector<T> items;
    std::string next_cursor;  ///< empty at the end
    /// Workspaces that are not in the list: their sandboxes have not answered since the start.
    std::size_t unanswered = 0;
};

struct WorkspaceUsage {
    std::uint64_t cpu_ms = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t processes = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t disk_limit_bytes = 0;
    std::vector<std::string> gpus;  ///< uuids of its devices
};

/// Workspaces of one principal's tenant: Error(NotFound) for another tenant's id, Error(Gone) with
/// reason and time for 24 h after the end, Error(SandboxLost) when the sandbox has just died.
/// Operators also see the id, pool, age and reason of other tenants' workspaces (get, list, Gone),
/// but not the name, labels or other tenant data, and may end them; admins see the whole view.
/// Thread-safe.
class Workspaces {
public:
    virtual ~Workspaces() = default;
    /// Claims a workspace; waits for its image and for a sandbox. A claim whose task is destroyed
    /// leaves the line, and nothing of it stays. Errors: NotFound (pool), InvalidSpec (no pool
    /// fits), PoolExhausted, QuotaExceeded, PoolDegraded, IdempotencyMismatch, IdempotencyInFlight,
    /// Unsupported.
    virtual Task<WorkspaceView> create(Principal who, WorkspaceRequest request) = 0;
    /// Claims `count` equal workspaces or none. Throws as create(); InvalidSpec if `count` is more
    /// than the pool or the quota has in all.
    virtual Task<std::vector<WorkspaceView>> createAll(Principal who, WorkspaceRequest request,
                                                       std::size_t count) = 0;
    virtual WorkspaceView get(const Principal& who, const std::string& id) = 0;
    virtual Page<WorkspaceView> list(const Principal& who, const ListQuery& query) = 0;
    virtual WorkspaceView patch(const Principal& who, const std::string& id,
                                const WorkspacePatch& patch) = 0;
    virtual WorkspaceView touch(const Principal& who, const std::string& id) = 0;
    /// Idempotent. Returns when the workspace no longer answers; the rest of its end follows later.
    virtual void close(const Principal& who, const std::string& id) = 0;
    virtual WorkspaceUsage usage(const Principal& who, const std::string& id) = 0;
    /// Returns its requests to the outside; empty if its network is None.
    virtual egress::EgressReport egress(const Principal& who, const std::string& id) = 0;
    /// The languages of the workspace's image.
    virtual std::vector<std::string> languages(const Principal& who, const std::string& id) = 0;

    // Files: paths are relative to the root, or absolute beneath it. Errors: InvalidArgument (bad
    // path), NotFound, Conflict (a directory in the way), Forbidden (outside), DiskFull.
    /// Waits for the agent for at most `patience`.
    virtual agent::FileStat stat(const Principal& who, const std::string& id,
                                 const std::string& path, std::chrono::milliseconds patience) = 0;
    agent::FileStat stat(const Principal& who, const std::string& id, const std::string& path) {
        return stat(who, id, path, agent::kDataPatience);
    }
    virtual void readFile(const Principal& who, const std::string& id, const std::string& path,
                          std::uint64_t offset, std::uint64_t length,
                          const std::function<void(const agent::FileStat&)>& begin,
                          const std::function<bool(std::string_view)>& chunk) = 0;
    virtual agent::FileStat writeFile(
        const Principal& who, const std::string& id, const std::string& path,
        std::optional<unsigned> mode,
        const std::function<std::size_t(char*, std::size_t)>& next) = 0;
    /// Sends a tar of a directory; the first `chunk` comes once the path is known to be one.
    virtual void readArchive(const Principal& who, const std::string& id, const std::string& path,
                             const std::function<bool(std::string_view)>& chunk) = 0;
    /// Unpacks a tar completely or not at all; InvalidArgument names the fault in it.
    virtual agent::ArchiveCount writeArchive(
        const Principal& who, const std::string& id, const std::string& path,
        const std::function<std::size_t(char*, std::size_t)>& next) = 0;
    virtual agent::FileList listFiles(const Principal& who, const std::string& id,
                                      const std::string& path, bool recursive, std::size_t limit,
                                      const std::string& after) = 0;
    virtual void makeDirectory(const Principal& who, const std::string& id,
                               const std::string& path) = 0;
    virtual void moveFile(const Principal& who, const std::string& id, const std::string& from,
                          const std::string& to) = 0;
    virtual void removeFile(const Principal& who, const std::string& id, const std::string& path,
                            bool recursive) = 0;
    /// `changed` gets the id of each workspace in which one of these calls has changed a file. It
    /// is called from any thread and must not block; it owns what it touches (base/Subscribers.h).
    virtual std::shared_ptr<void> subscribeToFiles(
        std::function<void(const std::string& workspace)> changed) = 0;
};

}  // namespace hearth::controller
