#include "controller/services/PackageService.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Json.h"
#include "controller/packages/PackageSpec.h"

namespace hearth::controller {
namespace {

constexpr std::uint64_t kOutput = 1U << 20U;
/// The exit statuses by which a shell tells that a program is missing, or cannot be run.
constexpr int kNoProgram = 127;
constexpr int kNotRunnable = 126;

}  // namespace

PackagesView PackageService::viewOf(const Execution& execution,
                                    const std::vector<std::string>& names) {
    const ExecutionView seen = execution.view();
    PackagesView view;
    view.execution_id = seen.id;
    if (seen.status == ExecutionStatus::Running) {
        view.status = PackagesStatus::Running;
        for (const std::string& name : names) view.packages[name].state = PackageStage::Installing;
        return view;
    }
    view.status =
        seen.status == ExecutionStatus::Ok ? PackagesStatus::Done : PackagesStatus::Failed;
    if (seen.status == ExecutionStatus::Timeout) view.error = "it took too long and was ended";
    if (seen.status == ExecutionStatus::Oom) view.error = "the workspace's memory is used up";
    if (const std::optional<Json> outcome = packagesOutcome(seen.stdout_bytes)) {
        if (view.error.empty()) view.error = outcomeText(*outcome, "error");
        const auto packages = outcome->find("packages");
        if (packages != outcome->end() && packages->is_object()) {
            for (const auto& [name, told] : packages->items()) {
                if (!told.is_object()) continue;
                view.packages[name] = {
                    kPackageStages.find(textAt(told, "state")).value_or(PackageStage::Failed),
                    outcomeText(told, "version"), outcomeText(told, "error")};
            }
        }
    } else {
        view.status = PackagesStatus::Failed;
        if (view.error.empty()) {
            const int status = seen.exit_code.value_or(0);
            view.error = status == kNoProgram || status == kNotRunnable
                             ? "the image has no python3, which manages packages"
                             : "the package manager ended without an outcome";
        }
    }
    if (view.status == PackagesStatus::Failed && view.packages.empty()) {
        for (const std::string& name : names) {
            view.packages[name] = {PackageStage::Failed, "", view.error};
        }
    }
    return view;
}

PackageService::Begun PackageService::begin(const Principal& who, const std::string& workspace,
                                            const PackagesRequest& request) {
    Error wrong(ErrorCode::InvalidArgument, "some packages are not named correctly");
    for (std::size_t i = 0; i < request.install.size(); ++i) {
        if (const auto why = wrongSpec(request.install[i], request.manager)) {
            wrong.field("/install/" + std::to_string(i), *why);
        }
    }
    for (std::size_t i = 0; i < request.check.size(); ++i) {
        const std::string& name = request.check[i];
        if (wrongSpec(name, request.manager) || packageName(name) != name) {
            wrong.field("/check/" + std::to_string(i), "is no package's name");
        }
    }
    if (!wrong.fields().empty()) throw wrong;
    const bool installs = !request.install.empty() || request.from;
    if (!installs && request.check.empty() && !request.list) {
        throw Error(ErrorCode::InvalidArgument, "there is nothing to do")
            .hint("name packages in `install` or `check`, a file in `from`, or set `list`");
    }
    if (request.from && !request.install.empty()) {
        throw Error(ErrorCode::InvalidArgument, "`install` and `from` exclude each other");
    }
    std::map<std::string, std::string> shut;
    if (installs) {
        shut = shutWays(workspaces_.get(who, workspace).network, mirrored_);
    }
    Json task{{"manager", kPackageManagers.of(request.manager)},
              {"install", request.install},
              {"check", request.check},
              {"from", request.from ? Json(*request.from) : Json()},
              {"list", request.list},
              {"shut", shut}};
    ExecutionRequest work;
    work.argv = {"python3", kPackagesProgram};
    work.stdin_bytes = dumpJson(task);
    work.timeout = request.timeout;
    work.output_limit = kOutput;
    work.background = true;
    Begun begun{executions_.start(who, workspace, work), {}};
    for (const std::string& spec : request.install) begun.names.push_back(packageName(spec));
    return begun;
}

}  // namespace hearth::controller
