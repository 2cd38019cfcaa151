#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/contract/Executions.h"
#include "controller/egress/policy/IndexKind.h"
#include "controller/packages/PackageSpec.h"

namespace hearth::controller {

/// A parsed `POST …/packages` or call of the tool `packages`.
struct PackagesRequest {
    PackageManager manager = PackageManager::Auto;
    std::vector<std::string> install;  ///< specifiers: "numpy==2.1", "@scope/name@^1"
    std::optional<std::string> from;   ///< a file of the workspace that names them
    std::vector<std::string> check;    ///< names
    bool list = false;                 ///< report everything that is installed
    std::chrono::milliseconds wait = std::chrono::seconds(5);
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

enum class PackagesStatus : std::uint8_t { Done, Running, Failed };
inline constexpr Texts<PackagesStatus, 3> kPackagesStatuses{{"done", "running", "failed"}};

enum class PackageStage : std::uint8_t { Installed, Installing, Failed, Absent };
inline constexpr Texts<PackageStage, 4> kPackageStages{
    {"installed", "installing", "failed", "absent"}};

struct PackageState {
    PackageStage state = PackageStage::Absent;
    std::string version;
    std::string error;  ///< in words for the caller; untrusted text
};

struct PackagesView {
    PackagesStatus status = PackagesStatus::Running;
    std::map<std::string, PackageState> packages;
    std::string error;  ///< why nothing at all could be done; untrusted text
    std::string execution_id;
};

/// Installs and looks up packages in a workspace, as an execution in it: bounded, killed and
/// accounted like every other one. Thread-safe.
class PackageService {
public:
    /// `mirrored`: the kinds of indexes that the server mirrors, as returned by
    /// EgressGateway::mirrored().
    PackageService(Executions& executions, Workspaces& workspaces,
                   std::vector<egress::IndexKind> mirrored)
        : executions_(executions), workspaces_(workspaces), mirrored_(std::move(mirrored)) {}

    /// The work, and the names of its packages, for viewOf().
    struct Begun {
        std::shared_ptr<Execution> execution;
        std::vector<std::string> names;
    };
    /// Starts the work and does not wait; the caller handles `request.wait`. Errors:
    /// InvalidArgument (specifiers), those of Executions::start. If a missing package has no way to
    /// an index, the work itself reports it, after a check.
    Begun begin(const Principal& who, const std::string& workspace, const PackagesRequest& request);
    /// Returns the progress of such work; `names` are reported as installing while it runs.
    static PackagesView viewOf(const Execution& execution, const std::vector<std::string>& names);

private:
    Executions& executions_;
    Workspaces& workspaces_;
    const std::vector<egress::IndexKind> mirrored_;
};

}  // namespace hearth::controller
