#pragma once

#include <linux/capability.h>

#include <array>
#include <span>

namespace hearth::pool::launcher {

/// All of root's rights that the launcher and its programs (the OCI runtime, mkfs, umoci, skopeo)
/// keep: each entry stands for a step of making, ending or weighing a sandbox. In the user
/// namespace of a sandbox the runtime has every capability, whatever this list has.
inline std::span<const int> capabilities() {
    static constexpr std::array kKept = {
        CAP_SYS_ADMIN,     // mounts, namespaces, loop devices, filters without no_new_privs
        CAP_SETUID,        // maps of a user namespace; skopeo runs as nobody
        CAP_SETGID,        // likewise
        CAP_SETPCAP,       // the runtime bounds the agent's capabilities
        CAP_CHOWN,         // sockets, workspaces and weights belong to others
        CAP_FOWNER,        // modes of files that then belong to others
        CAP_DAC_OVERRIDE,  // other users' files in images, layers, the data directory
        CAP_SETFCAP,       // takes capabilities off the files of an image
        CAP_SYS_CHROOT,    // looks into an image for its languages
        CAP_SYS_PTRACE,    // runc opens the namespaces of the process it has just begun
        CAP_KILL,          // ends processes of a sandbox's users
        CAP_MKNOD,         // a sandbox's own /dev
        CAP_SYS_RESOURCE,  // the floor of the agent's oom_score_adj, limits above the inherited
    };
    return kKept;
}

}  // namespace hearth::pool::launcher
