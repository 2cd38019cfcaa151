#pragma once

#include <mutex>
#include <set>
#include <string>

#include "controller/Claims.h"
#include "controller/OnDemandPools.h"
#include "controller/SpecStore.h"
#include "controller/Workspaces.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::controller {

/// The Workspaces that the protocol surfaces see: tenants, idempotency, files; claims and endings
/// do the work. Thread-safe.
class WorkspaceService final : public Workspaces {
public:
    WorkspaceService(WorkspaceTable& table, Claims& claims, Endings& endings, SpecStore& specs,
                     Journal& journal, SandboxReconciler& sandboxes, const pool::WarmPool& warm,
                     pool::ContainerRuntime& runtime, OnDemandPools& on_demand,
                     broker::Broker& broker, std::string default_pool,
                     const std::string& secret_key, const Clock& clock);

    WorkspaceView create(const Principal& who, const WorkspaceRequest& request) override;
    WorkspaceView get(const Principal& who, const std::string& id) override;
    Page<WorkspaceView> list(const Principal& who, const ListQuery& query) override;
    WorkspaceView patch(const Principal& who, const std::string& id,
                        const WorkspacePatch& patch) override;
    WorkspaceView touch(const Principal& who, const std::string& id) override;
    void close(const Principal& who, const std::string& id) override;
    WorkspaceUsage usage(const Principal& who, const std::string& id) override;
    broker::EgressReport egress(const Principal& who, const std::string& id) override;
    std::vector<std::string> languages(const Principal& who, const std::string& id) override;

    agent::FileStat stat(const Principal& who, const std::string& id,
                         const std::string& path) override;
    void readFile(const Principal& who, const std::string& id, const std::string& path,
                  std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const agent::FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk) override;
    agent::FileStat writeFile(const Principal& who, const std::string& id, const std::string& path,
                              std::optional<unsigned> mode,
                              const std::function<std::size_t(char*, std::size_t)>& next) override;
    void readArchive(const Principal& who, const std::string& id, const std::string& path,
                     const std::function<bool(std::string_view)>& chunk) override;
    agent::ArchiveCount writeArchive(
        const Principal& who, const std::string& id, const std::string& path,
        const std::function<std::size_t(char*, std::size_t)>& next) override;
    agent::FileList listFiles(const Principal& who, const std::string& id, const std::string& path,
                              bool recursive, std::size_t limit, const std::string& after) override;
    void makeDirectory(const Principal& who, const std::string& id,
                       const std::string& path) override;
    void moveFile(const Principal& who, const std::string& id, const std::string& from,
                  const std::string& to) override;
    void removeFile(const Principal& who, const std::string& id, const std::string& path,
                    bool recursive) override;

    /// For Executions: the principal's active workspace, or the error that says what became of it.
    std::shared_ptr<Workspace> require(const Principal& who, const std::string& id);
    /// For one shots: claims, or finds the workspace of the same key again (`replayed`). Null with
    /// `replayed` set when that workspace has already ended.
    Claims::Claimed open(const Principal& who, const WorkspaceRequest& request, bool one_shot,
                         bool& replayed);
    /// The id that a keyed request's workspace has, now and after any crash.
    std::string claimIdFor(const Principal& who, const WorkspaceRequest& request,
                           bool one_shot) const;
    std::string workspaceIdFor(const std::string& claim_id) const;

private:
    class Busy;

    /// Where one is configured, it is meant: another in its place would be a guess.
    void requireDefaultPool(const std::vector<PoolPtr>& pools) const;
    OnDemandPools::Found choosePool(const Principal& who, const WorkspaceRequest& request);
    [[noreturn]] void explainMissing(const Principal& who, const std::string& id);
    /// Runs a call to the agent; translates its refusals, and a lost agent into SandboxLost.
    template <typename Call>
    auto ask(const std::shared_ptr<Workspace>& workspace, const std::string& path, Call call);

    WorkspaceTable& table_;
    Claims& claims_;
    Endings& endings_;
    SpecStore& specs_;
    Journal& journal_;
    SandboxReconciler& sandboxes_;
    const pool::WarmPool& warm_;
    pool::ContainerRuntime& runtime_;
    OnDemandPools& on_demand_;
    broker::Broker& broker_;
    const std::string default_pool_;
    const std::string& secret_key_;
    const Clock& clock_;
    std::mutex mutex_;
    std::set<std::string> in_flight_;  // guarded by mutex_; claim ids of keyed creates under way
};

}  // namespace hearth::controller
