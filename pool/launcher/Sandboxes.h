#pragma once

#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pool/image/ImageStore.h"
#include "pool/image/LayerStore.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/Messages.h"
#include "pool/launcher/Names.h"
#include "pool/launcher/OciCommand.h"
#include "pool/launcher/UidLeases.h"
#include "pool/sys/Cgroups.h"

namespace hearth::pool::launcher {

/// What the launcher does to sandboxes. Every method runs in a child of the launcher with one
/// thread, and may be killed at any point: what it has made until then is found again by name.
class Sandboxes {
public:
    /// `inside` is the directory that becomes /.hearth; `since` the start of the launcher.
    Sandboxes(const LauncherOptions& options, std::string inside, timespec since);
    Sandboxes(const Sandboxes&) = delete;
    Sandboxes& operator=(const Sandboxes&) = delete;

    /// Makes and starts one. On failure nothing of it is left.
    void create(const CreateRequest& request, int listen);
    /// Ends one and removes everything of it; nothing there is fine. Throws if something resists.
    void destroy(const SandboxId& id);
    /// Holds one to less than it was made with. What the kernel has in force is the bound, so
    /// nothing is ever widened, whatever was asked for before: Error(Forbidden). Error(NotFound)
    /// if it has gone. A value where a limit is in use already: it is then to be ended.
    std::optional<LimitInUse> narrow(const NarrowRequest& request) const;
    /// Whole or in pieces, sorted by id, at most a page behind `after`; `more` says if there are
    /// others.
    std::vector<Found> list(const std::string& after, bool& more);
    /// Removes everything of this instance that belongs to none of `keep`. A socket alone is left
    /// when it is younger than the launcher: its server is about to use it.
    void sweep(const std::set<SandboxId>& keep);

    /// Directories under inside() that sandboxes may still have mounted.
    std::set<std::string> insideInUse();

private:
    std::set<SandboxId> known(bool old_sockets_only);
    std::string rootfsOf(const std::string& image, const std::string& digest) const;
    void killAll(const SandboxId& id);

    LauncherOptions options_;
    Names names_;
    OciCommand runtime_;
    UidLeases leases_;
    image::ImageStore images_;
    image::LayerStore layers_;
    sys::Cgroups cgroups_;
    std::string inside_;
    timespec since_;
};

}  // namespace hearth::pool::launcher
