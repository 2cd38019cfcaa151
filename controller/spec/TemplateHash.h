#pragma once

#include <string>

#include "base/Digest.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// Returns a name for a sandbox's template: equal templates have equal hashes, so a change of
/// `warm` or `limits` replaces no sandbox. Packages count only by the digest of their layer:
/// another spelling of the same packages changes nothing.
inline std::string templateHash(const PoolSpec& spec, const std::string& layer) {
    const pool::SandboxLimits& l = spec.limits;
    std::string text = spec.image;
    for (const std::uint64_t part :
         {std::uint64_t{l.milli_cpu}, l.memory_bytes, std::uint64_t{l.pids}, l.workspace_bytes,
          l.tmp_bytes, static_cast<std::uint64_t>(spec.storage)}) {
        text += '/' + std::to_string(part);
    }
    // Only non-empty lists count: sandboxes made by a server without prewarm stay valid.
    const auto list = [&text](const char* name, const std::vector<std::string>& words) {
        if (words.empty()) return;
        text += std::string("/") + name;
        for (const std::string& word : words) text += std::to_string(word.size()) + ":" + word;
    };
    list("languages", spec.prewarm_languages);
    list("imports", spec.prewarm_imports);
    list("command", spec.prewarm_command);
    if (spec.gpu.count > 0) {
        text += "/gpu" + std::to_string(spec.gpu.count) + kGpuSharings.of(spec.gpu.sharing) +
                std::to_string(spec.gpu.shared_by);
        list("products", spec.gpu.products);
    }
    if (!spec.runtime_class.empty()) text += "/class" + spec.runtime_class;
    if (!spec.pod_template.empty()) text += "/pod" + dumpJson(spec.pod_template);
    if (!layer.empty()) text += "/layer" + layer;
    return toHex(sha256(text)).substr(0, 16);
}

}  // namespace hearth::controller
