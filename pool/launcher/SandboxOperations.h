#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pool/image/ImageStore.h"
#include "pool/image/LayerStore.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/OciCommand.h"
#include "pool/launcher/UidLeases.h"
#include "pool/launcher/protocol/LauncherMessages.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/LoopDevice.h"

namespace hearth::pool::launcher {

/// The launcher's operations on sandboxes. Every method runs in a child of the launcher with one
/// thread, and may be killed at any point: its unfinished work is found again by name.
class SandboxOperations {
public:
    /// `inside` is the directory that becomes /.hearth; `since` the start of the launcher.
    SandboxOperations(const LauncherOptions& options, std::string inside, timespec since);
    SandboxOperations(const SandboxOperations&) = delete;
    SandboxOperations& operator=(const SandboxOperations&) = delete;

    /// Makes and starts a sandbox. On failure nothing of it is left.
    void create(const CreateRequest& request, int listen);
    /// Ends a sandbox and removes all of it; a missing one is fine. Throws if something resists.
    void destroy(const SandboxId& id);
    /// Limits a sandbox to less than it was made with. The kernel's present limits are the bound,
    /// so nothing is ever widened, whatever was asked before: Error(Forbidden). Error(NotFound) if
    /// it has gone. Returns a value if a limit is in use already: then end it.
    std::optional<LimitInUse> narrow(const NarrowRequest& request) const;
    /// Finds one sandbox, whole or in pieces; costs the same however many there are.
    std::optional<Found> find(const SandboxId& id);
    /// Lists sandboxes, whole or in pieces, sorted by id, at most a page; `more` says if there are
    /// others.
    std::vector<Found> list(const ListRequest& request, bool& more);
    /// Returns everything of this instance that a sweep may remove, whole or in pieces. A socket
    /// alone is left out if it is younger than the launcher: its server is about to use it.
    std::set<SandboxId> present();
    /// Removes everything of these sandboxes, and returns the things that resist.
    std::vector<Leftover> sweep(const std::set<SandboxId>& gone);

    /// Directories under inside() that sandboxes may still have mounted.
    std::set<std::string> insideInUse();

private:
    bool alive(const SandboxId& id) const;
    Found describe(const SandboxId& id);
    std::uint64_t openFilesOf(const SandboxId& id) const;
    std::set<SandboxId> known(bool old_sockets_only);
    std::optional<SandboxId> holderOf(const sys::LoopInUse& loop) const;
    std::string rootfsOf(const std::string& image, const std::string& digest) const;
    /// The time limits for the steps of an end.
    struct ClaimPatience {
        std::chrono::milliseconds init;
        std::chrono::milliseconds processes;
        std::chrono::milliseconds group;
    };
    void destroy(const SandboxId& id, const ClaimPatience& patience);
    void killAll(const SandboxId& id, const ClaimPatience& patience);
    /// Bounds the group's socket memory, and lets the server change the rest of its files.
    void handGroup(const SandboxId& id, const SandboxSpec& spec) const;
    void runLastHooks(const SandboxId& id) const;

    LauncherOptions options_;
    SandboxPaths names_;
    OciCommand runtime_;
    UidLeases leases_;
    image::ImageStore images_;
    image::LayerStore layers_;
    sys::Cgroups cgroups_;
    std::string inside_;
    timespec since_;
};

}  // namespace hearth::pool::launcher
