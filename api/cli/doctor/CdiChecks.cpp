#include "api/cli/doctor/CdiChecks.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMostNamed = 16;

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i) {
        text.append(i == 0 ? "" : ", ").append(names[i]);
    }
    return text + (names.size() > kMostNamed ? ", …" : "");
}

}  // namespace

Finding checkCdi(const pool::cdi::CdiFolders& folders) {
    const pool::cdi::CdiSpecs specs = pool::cdi::CdiSpecs::read(folders);
    const std::vector<std::string> uuids = specs.gpuUuids();
    std::string message =
        std::to_string(uuids.size()) + " GPUs are named by uuid" + (uuids.empty() ? "" : ": ");
    message += listed(uuids);
    if (!specs.problems().empty()) {
        for (const pool::cdi::CdiSpecs::Problem& problem : specs.problems()) {
            message.append("; ").append(problem.file).append(" is refused: ").append(problem.why);
        }
        return {Level::Warn, "cdi", message,
                "see the page on GPUs; `nvidia-ctk cdi generate` makes such files"};
    }
    if (!specs.anyFile()) return allRight("cdi", "no files; only sandboxes with GPUs need them");
    if (uuids.empty()) return {Level::Warn, "cdi", message, pool::cdi::kHowToNameGpus};
    return allRight("cdi", message);
}

}  // namespace hearth::cli
