#pragma once

#include <optional>
#include <string>

#include "base/host/Instance.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::launcher {

/// The paths of everything of a sandbox, by rule: instance and id name each kernel object and file,
/// so nothing has to be remembered to find it again. Pure.
class SandboxPaths {
public:
    explicit SandboxPaths(const Instance& instance) : instance_(instance) {}

    /// "hearth-<instance>-<32 hex>": container, bundle, image file.
    std::string container(const SandboxId& id) const;
    /// Returns the sandbox of a container or image file name; nullopt if it is not this instance's.
    std::optional<SandboxId> idOf(const std::string& container) const;

    std::string cgroupParent() const { return "/hearth-" + instance_.name; }
    std::string cgroupOfBackground() const { return cgroupParent() + "-background"; }
    std::string cgroup(const SandboxId& id) const { return cgroupParent() + "/" + container(id); }

    std::string sandboxes() const { return instance_.run_dir + "/sandboxes"; }
    std::string bundle(const SandboxId& id) const { return sandboxes() + "/" + id; }
    std::string runtimeRoot() const { return instance_.run_dir + "/runc"; }
    std::string runtimeState(const SandboxId& id) const {
        return runtimeRoot() + "/" + container(id);
    }
    std::string sockets() const { return instance_.run_dir + "/sockets"; }
    std::string socket(const SandboxId& id) const { return sockets() + "/" + id + ".sock"; }
    std::string marks() const { return instance_.run_dir + "/marks"; }
    /// An empty directory; each operation mounts there in its own mount namespace.
    std::string mountPoint() const { return instance_.run_dir + "/mnt"; }
    /// The same, for a sandbox's own /dev.
    std::string devices() const { return instance_.run_dir + "/dev"; }
    /// The file with the container program's version output.
    std::string runtimeVersion() const { return instance_.run_dir + "/runtime-version"; }
    std::string launcherLock() const { return instance_.run_dir + "/launcher.lock"; }

    std::string images() const { return instance_.data_dir + "/images"; }
    std::string rootfs() const { return instance_.data_dir + "/rootfs"; }
    /// The mount point of a sandbox's own view of its tree, in the mount namespace of its creation,
    /// and the empty directory below every view.
    std::string rootView() const { return rootfs() + "/.view"; }
    std::string emptyTree() const { return rootfs() + "/.empty"; }
    /// The mount point of the additions of a sandbox with GPUs to its tree, as rootView().
    std::string rootScratch() const { return rootfs() + "/.scratch"; }
    /// The layers, and the mount point of a sandbox's own view of one, as rootView().
    std::string layers() const { return instance_.data_dir + "/layers"; }
    std::string layerView() const { return layers() + "/.view"; }
    std::string emptyLayer() const { return layers() + "/.empty"; }
    /// The source of /.hearth; and a sandbox's own view of it, as rootView().
    std::string inside() const { return instance_.data_dir + "/inside"; }
    std::string insideView() const { return inside() + "/.view"; }
    std::string emptyInside() const { return inside() + "/.empty"; }
    std::string state() const { return instance_.data_dir + "/state"; }
    std::string storage() const { return instance_.data_dir + "/storage"; }
    std::string storageImage(const SandboxId& id) const {
        return storage() + "/" + container(id) + ".img";
    }

    /// Shared by all instances of the machine.
    std::string uidLeases() const;
    const std::string& instance() const { return instance_.name; }
    const std::string& dataDir() const { return instance_.data_dir; }

private:
    Instance instance_;
};

}  // namespace hearth::pool::launcher
