#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/Json.h"
#include "pool/image/Layout.h"

namespace hearth::pool::image {

/// The facts of an image that its sandboxes inherit. Kept by digest beside the unpacked tree.
struct ImageFacts {
    std::vector<std::string> env;  ///< "NAME=value", without what takeableEnv() leaves out
    std::string workdir;
    /// `{"python": {"file": "main.py", "run": ["/usr/bin/python3", "{file}"]}}`: the image's own
    /// table, /etc/hearth/languages.json, else what was found in it.
    Json languages = Json::object();
};

/// The variables of an image's configuration that its executions get. Dropped are those that steer
/// loaders, start-up files of interpreters or GPU runtimes (LD_*, NVIDIA_*, PYTHONSTARTUP and the
/// like), those that Hearth sets itself, malformed ones, and everything beyond 32 KiB in all.
std::vector<std::string> takeableEnv(const std::vector<std::string>& env);

/// Looks into an unpacked tree from a child process whose root it is, so that links resolve as in a
/// sandbox. Only for root in a process with one thread.
ImageFacts probeImage(const std::string& tree, const ImageConfig& config);

Json encodeFacts(const ImageFacts& facts);
/// Empty facts for what encodeFacts() did not write.
ImageFacts decodeFacts(const std::string& text);

}  // namespace hearth::pool::image
