#pragma once

#include <string>

namespace hearth::pool::image {

/// Makes a freshly unpacked tree fit to be the shared, read-only root of sandboxes, or throws
/// Error(InvalidArgument) with the reason why the image cannot be used:
/// - /dev, /proc, /sys, /tmp, /workspace and /.hearth are (or become) real, empty directories,
/// - devices, sockets and pipes are refused,
/// - everything belongs to root, can be read by all and written by nobody else (except the empty
///   /tmp and /workspace, which have the modes that sandboxes see),
/// - setuid and setgid bits and file capabilities are taken away: users of the host can reach the
///   tree, too.
/// Never follows a link out of the tree. One thread per tree.
void hardenRootfs(const std::string& root);
/// True if the tree has the folders of hardenRootfs(); an emptied tree lacks them.
bool hasMountPoints(const std::string& root);

}  // namespace hearth::pool::image
