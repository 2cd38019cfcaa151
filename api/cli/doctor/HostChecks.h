#pragma once

#include <string>
#include <string_view>

#include "api/cli/doctor/Finding.h"

namespace hearth::cli {

/// Checks the kernel features that Hearth needs. `root` is put before every path: "" on the
/// machine, a directory of made-up files in tests.
class HostChecks {
public:
    explicit HostChecks(std::string root = {}) : root_(std::move(root)) {}

    Finding kernel() const;
    Finding userNamespaces() const;
    Finding seccomp() const;
    Finding loopDevices() const;
    Finding runTmpfs() const;
    /// Reports the layout (v1, v2, hybrid) and checks that memory, pids and cpu can be limited.
    Finding cgroups() const;
    /// Checks for CAP_SYS_RESOURCE, with which Hearth sets a floor under oom_score_adj.
    Finding oomScores() const;
    /// Tells how many more files all programs of the machine together can open.
    Finding openFiles() const;
    /// The kernel settings that harden the host: they only give warnings, one finding each.
    Findings gates() const;
    Findings all() const;

private:
    std::string read(std::string_view path) const;
    bool exists(std::string_view path) const;

    std::string root_;
};

}  // namespace hearth::cli
