#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/Json.h"
#include "pool/image/Layout.h"

namespace hearth::pool::image {

/// The facts of an image that its sandboxes inherit. Stored by digest beside the unpacked tree.
struct ImageFacts {
    std::vector<std::string> env;  ///< "NAME=value", only those that takeableEnv() keeps
    std::string workdir;
    /// `{"python": {"file": "main.py", "run": ["/usr/bin/python3", "{file}"]}}`: the image's own
    /// table, /etc/hearth/languages.json, else the languages that were found in it.
    Json languages = Json::object();
};

/// Returns the variables of an image's configuration that its executions get. Drops variables that
/// steer loaders, start-up files of interpreters or GPU runtimes (LD_*, NVIDIA_*, PYTHONSTARTUP
/// etc.), variables that Hearth sets, malformed ones, and all beyond 32 KiB in total.
std::vector<std::string> takeableEnv(const std::vector<std::string>& env);

/// Examines an unpacked tree from a child process that has it as root, so links resolve as in a
/// sandbox. Only for root in a process with one thread.
ImageFacts probeImage(const std::string& tree, const ImageConfig& config);

Json encodeFacts(const ImageFacts& facts);
/// Returns empty facts for a text that encodeFacts() did not write.
ImageFacts decodeFacts(const std::string& text);

}  // namespace hearth::pool::image
