#pragma once

#include <string>

namespace hearth::pool::image {

/// Reads a freshly unpacked tree and throws Error(InvalidArgument) with path and reason if its
/// layout is one that no honest image has:
/// - /dev, /proc, /sys, /tmp, /workspace or /.hearth is a link or no directory: what is mounted
///   there would land somewhere else;
/// - a device, a pipe or a socket (except below /dev, which is covered and emptied);
/// - a hard link to a file that is also outside of the tree, or another file system within it;
/// - a relative link that climbs above the root: it could only be meant for a reader on the host;
/// - a name that is no UTF-8 or holds control characters, or one that marks a deletion of a layer
///   and was not carried out;
/// - folders nested beyond 128, a path beyond 4,095 bytes, or more than a million entries.
/// Changes nothing and never follows a link. Other links may point anywhere, even to nothing: they
/// are read inside sandboxes only. One thread per tree.
void lintRootfs(const std::string& root);

}  // namespace hearth::pool::image
