#pragma once

#include <string>
#include <string_view>

#include "api/cli/doctor/Finding.h"

namespace hearth::cli {

/// The kernel's side of what Hearth needs. `root` is put before every path: "" on the machine, a
/// directory of made-up files in tests.
class HostChecks {
public:
    explicit HostChecks(std::string root = {}) : root_(std::move(root)) {}

    Finding kernel() const;
    Finding userNamespaces() const;
    Finding seccomp() const;
    Finding loopDevices() const;
    Finding runTmpfs() const;
    /// The layout (v1, v2, hybrid) and whether memory, pids and cpu can be limited.
    Finding cgroups() const;
    /// Checks that the kernel gives what Hearth makes a floor of its oom_score_adj.
    Finding oomScores() const;
    /// SECURITY's host gates: only warnings, one finding each.
    Findings gates() const;
    Findings all() const;

private:
    std::string read(std::string_view path) const;
    bool exists(std::string_view path) const;

    std::string root_;
};

}  // namespace hearth::cli
