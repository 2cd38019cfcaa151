#include "pool/isolation/RuntimeAdvisories.h"

#include <cstdio>
#include <limits>
#include <tuple>

namespace hearth::pool::launcher {
namespace {

/// The three numbers of a release, and that of its candidate (kFinal for the release itself).
using Version = std::tuple<int, int, int, int>;
constexpr int kFinal = std::numeric_limits<int>::max();

struct Hole {
    const char* name;
    std::vector<Version> fixed;  // the first fixed release of each line, ascending
    const char* debian;          // patch level that has the fix, or nullptr
};

const std::vector<Hole>& holes() {
    static const std::vector<Hole> table{
        {"CVE-2024-21626", {{1, 1, 12, kFinal}}, "1.1.5+ds1-1+deb12u1"},
        {"CVE-2024-45310", {{1, 1, 14, kFinal}, {1, 2, 0, kFinal}}, nullptr},
        {"CVE-2025-31133", {{1, 2, 8, kFinal}, {1, 3, 3, kFinal}, {1, 4, 0, kFinal}}, nullptr},
        {"CVE-2025-52565", {{1, 2, 8, kFinal}, {1, 3, 3, kFinal}, {1, 4, 0, kFinal}}, nullptr},
        {"CVE-2025-52881", {{1, 2, 8, kFinal}, {1, 3, 3, kFinal}, {1, 4, 0, kFinal}}, nullptr},
        {"CVE-2026-41579", {{1, 4, 3, kFinal}, {1, 5, 0, kFinal}}, nullptr},
    };
    return table;
}

/// True if fixed in its own release line, or newer than every line that needed the fix.
bool isFixed(const Version& version, const std::vector<Version>& fixed) {
    for (const Version& from : fixed) {
        const bool same_line =
            std::get<0>(from) == std::get<0>(version) && std::get<1>(from) == std::get<1>(version);
        if (same_line) return version >= from;
    }
    return version >= fixed.back();
}

}  // namespace

std::vector<std::string> knownHoles(const std::string& version, const std::string& commit) {
    int major = 0;
    int minor = 0;
    int patch = 0;
    int candidate = kFinal;
    const int read = std::sscanf(version.c_str(), "runc version %d.%d.%d-rc.%d", &major, &minor,
                                 &patch, &candidate);
    if (read < 3) return {};
    std::vector<std::string> open;
    for (const Hole& hole : holes()) {
        const bool patched = hole.debian != nullptr && commit.starts_with(hole.debian);
        if (!patched && !isFixed({major, minor, patch, candidate}, hole.fixed))
            open.emplace_back(hole.name);
    }
    return open;
}

}  // namespace hearth::pool::launcher
