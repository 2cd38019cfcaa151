#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/Executions.h"
#include "controller/broker/NetworkPolicy.h"

namespace hearth::controller {

/// What `POST …/packages` and the tool `packages` parse into.
struct PackagesRequest {
    std::string manager = "auto";      ///< auto, pip, npm
    std::vector<std::string> install;  ///< specifiers: "numpy==2.1", "@scope/name@^1"
    std::optional<std::string> from;   ///< a file of the workspace that names them
    std::vector<std::string> check;    ///< names
    bool list = false;                 ///< tell of all that is installed
    std::chrono::milliseconds wait = std::chrono::seconds(5);
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

struct PackageState {
    std::string state;  ///< installed, installing, failed, absent
    std::string version;
    std::string error;  ///< in words for whoever asked; untrusted text
};

struct PackagesView {
    std::string status;  ///< done, running, failed
    std::map<std::string, PackageState> packages;
    std::string error;  ///< why nothing could be done at all; untrusted text
    std::string execution_id;
};

/// The program of a sandbox that installs and looks up packages.
inline constexpr const char* kPackagesProgram = "/.hearth/packages/packages.py";
/// What it told by the last line of `output`; nullopt if it did not come to that.
std::optional<Json> packagesOutcome(std::string output);
/// What is wrong with a specifier, or nullopt. Only names and versions of an index: no options, no
/// URLs, no paths, no version control (PEP 508; npm's name@range). `manager` is auto, pip or npm.
std::optional<std::string> wrongSpec(const std::string& spec, const std::string& manager);
/// Why what is absent cannot be installed, for each manager ("pip", "npm") that has no way to an
/// index from a workspace of this network; `mirrored` are the kinds that the server mirrors.
std::map<std::string, std::string> shutWays(broker::NetworkMode network,
                                            const std::vector<std::string>& mirrored);
/// Why the packages of an index of this kind ("pypi", "npm", "apt") are not to be had from a
/// mirror.
std::string notMirrored(const std::string& kind);
/// The name in a specifier that is right: "numpy" of "numpy[extra]>=2".
std::string packageName(const std::string& spec);

/// Installs and looks up packages in a workspace, as an execution in it: bounded, killed and
/// accounted like every other one. Thread-safe.
class Packages {
public:
    /// `mirrored`: the kinds of indexes that the server mirrors, as Broker::mirrored() tells.
    Packages(Executions& executions, Workspaces& workspaces, std::vector<std::string> mirrored)
        : executions_(executions), workspaces_(workspaces), mirrored_(std::move(mirrored)) {}

    /// The work and the names that it is about, for viewOf().
    struct Begun {
        std::shared_ptr<Execution> execution;
        std::vector<std::string> names;
    };
    /// Begins it and waits for nothing; `request.wait` is the caller's affair. Errors:
    /// InvalidArgument (specifiers), those of Executions::start. That something is absent and there
    /// is no way to an index is told by the work, which looks first.
    Begun begin(const Principal& who, const std::string& workspace, const PackagesRequest& request);
    /// How such work came along; `names` are told as installing while it runs.
    static PackagesView viewOf(const Execution& execution, const std::vector<std::string>& names);

private:
    Executions& executions_;
    Workspaces& workspaces_;
    const std::vector<std::string> mirrored_;
};

}  // namespace hearth::controller
