#pragma once

#include <string>

#include "base/Subscribers.h"
#include "controller/claims/WorkspaceOpener.h"
#include "controller/contract/Workspaces.h"
#include "controller/egress/EgressGateway.h"
#include "controller/store/Epoch.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// The Workspaces for the protocol surfaces. Thread-safe.
class WorkspaceService final : public Workspaces {
public:
    WorkspaceService(WorkspaceAccess& access, WorkspaceOpener& opener, WorkspaceTable& table,
                     WorkspaceTerminator& terminator, const Epoch& epoch,
                     egress::EgressGateway& gateway, const History& history);

    Task<WorkspaceView> create(Principal who, WorkspaceRequest request) override;
    Task<std::vector<WorkspaceView>> createAll(Principal who, WorkspaceRequest request,
                                               std::size_t count) override;
    WorkspaceView get(const Principal& who, const std::string& id) override;
    Page<WorkspaceView> list(const Principal& who, const ListQuery& query) override;
    WorkspaceView patch(const Principal& who, const std::string& id,
                        const WorkspacePatch& patch) override;
    WorkspaceView touch(const Principal& who, const std::string& id) override;
    void close(const Principal& who, const std::string& id) override;
    WorkspaceUsage usage(const Principal& who, const std::string& id) override;
    egress::EgressReport egress(const Principal& who, const std::string& id) override;
    std::vector<std::string> languages(const Principal& who, const std::string& id) override;

    using Workspaces::stat;
    agent::FileStat stat(const Principal& who, const std::string& id, const std::string& path,
                         std::chrono::milliseconds patience) override;
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
    std::shared_ptr<void> subscribeToFiles(
        std::function<void(const std::string& workspace)> changed) override;

private:
    class Busy;

    std::vector<WorkspaceView> viewsOf(const Principal& who, const WorkspaceOpener::Opened& opened);

    WorkspaceAccess& access_;
    WorkspaceOpener& opener_;
    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    const Epoch& epoch_;
    egress::EgressGateway& gateway_;
    const History history_;
    SubscribersTo<std::string> of_files_;
};

}  // namespace hearth::controller
