#include "api/mcp/seeds/SeedPackages.h"
#include "api/mcp/seeds/SeedToolkit.h"

// S3: an environment by a bare id, one package at a time in the background, links with names.

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionView;
using controller::PackagesStatus;
using controller::PackageStage;
using controller::PackagesView;
using controller::Services;

/// How long install_package_in_env waits before it answers "installing".
constexpr auto kInstallWait = std::chrono::seconds(5);

Json installing(const std::string& name, double seconds) {
    return {{"status", "installing"},
            {"message", name + " is being installed; ask check_package_status again"},
            {"complete", false},
            {"success", nullptr},
            {"elapsed_seconds", seconds}};
}

ToolResult told(const std::string& status, const std::string& message) {
    return valueResult({{"success", status == "success"},
                        {"status", status},
                        {"message", message},
                        {"complete", true}});
}

ToolOutcome installPackage(const Services& services, const CallContext& call,
                           const Arguments& arguments) {
    const std::string spec = *arguments.text("package_name");
    return installPackages(services, call, *arguments.text("container_id"), {spec}, kInstallWait,
                           [spec](const PackagesView& view, const ExecutionView& run) {
                               if (view.status == PackagesStatus::Running) {
                                   Json out{{"success", nullptr}};
                                   out.update(installing(spec, run.duration_ms.value_or(0) / 1000));
                                   out.erase("elapsed_seconds");
                                   return valueResult(out);
                               }
                               if (view.status == PackagesStatus::Done)
                                   return told("success", spec + " is installed");
                               ToolResult result = told("failed", packageFault(view));
                               if (run.stderr_bytes.empty()) return result;
                               Json out = result.structured;
                               out["stderr"] = clip(run.stderr_bytes, kTextCap).text;
                               return valueResult(out);
                           });
}

ToolOutcome checkPackage(const Services& services, const CallContext& call,
                         const Arguments& arguments) {
    const std::string workspace = *arguments.text("container_id");
    const std::string spec = *arguments.text("package_name");
    const std::optional<NotedInstall> noted = installNoted(services, call, workspace, spec);
    if (noted && !noted->execution->finished()) {
        return valueResult(installing(spec, noted->elapsed_seconds));
    }
    std::string fault;
    if (noted) {
        const PackagesView last =
            controller::PackageService::viewOf(*noted->execution, {nameIn(spec)});
        if (last.status == PackagesStatus::Failed) fault = packageFault(last);
    }
    // An installed package may have been removed since, or a missing one installed.
    return checkPackages(
        services, call, workspace, {spec},
        [spec, fault](const PackagesView& view, const ExecutionView&) {
            const auto found = view.packages.find(nameIn(spec));
            if (found != view.packages.end() && found->second.state == PackageStage::Installed) {
                return told("success",
                            nameIn(spec) + " " + toUtf8(found->second.version) + " is installed");
            }
            if (view.status != PackagesStatus::Done) return told("error", packageFault(view));
            if (!fault.empty()) return told("failed", fault);
            return told("not_found", spec + " is not installed");
        });
}

Task<ToolResult> createEnvironment(const Services& services, CallContext call) {
    Task<controller::WorkspaceView> opening = openWorkspace(services, call, {});
    const controller::WorkspaceView view = co_await opening;
    co_return tellingOf(view, services, call, valueResult(view.id));
}

}  // namespace

std::vector<SeedTool> s3Tools(const Services& services) {
    const Json container = stringParam("The id that create_python_env gave.");
    const Json package = stringParam("A package of an index, as numpy or numpy==2.1.");
    std::vector<SeedTool> tools;
    tools.push_back({{"create_python_env", "Create a Python environment",
                      "Gives the id of a new Python environment, for the other tools.",
                      objectSchema(Json::object()), toolHints(false, false, false),
                      [&services](const CallContext& call, const Arguments&) {
                          return createEnvironment(services, call);
                      }}});
    tools.push_back(
        {{"execute_python_code", "Execute Python code",
          "Runs Python code in an environment; gives its output, its errors and a "
          "link for each file that it made.",
          objectSchema({{"container_id", container}, {"code", stringParam("The program.", 0)}},
                       {"container_id", "code"}),
          toolHints(false, false, false),
          [&services](const CallContext& call, const Arguments& arguments) {
              return runPython(services, call, *arguments.text("container_id"),
                               *arguments.text("code"), FileLinks::Objects);
          }},
         [](const Error& error) { return pythonFailure(error, FileLinks::Objects); }});
    tools.push_back({{"install_package_in_env", "Install a package",
                      "Starts to install a Python package and answers after a few seconds at the "
                      "latest; check_package_status tells whether it is there.",
                      objectSchema({{"container_id", container}, {"package_name", package}},
                                   {"container_id", "package_name"}),
                      toolHints(false, false, true),
                      [&services](const CallContext& call, const Arguments& arguments) {
                          return installPackage(services, call, arguments);
                      }},
                     [](const Error& error) {
                         return Json{{"success", false},
                                     {"status", "failed"},
                                     {"message", inWords(error)},
                                     {"complete", true}};
                     }});
    tools.push_back({{"check_package_status", "Check a package",
                      "Tells whether a package is installed, being installed, failed or not there.",
                      objectSchema({{"container_id", container}, {"package_name", package}},
                                   {"container_id", "package_name"}),
                      toolHints(true, false, true),
                      [&services](const CallContext& call, const Arguments& arguments) {
                          return checkPackage(services, call, arguments);
                      }},
                     [](const Error& error) {
                         return Json{{"status", "error"},
                                     {"message", inWords(error)},
                                     {"complete", true},
                                     {"success", false}};
                     }});
    return tools;
}

}  // namespace hearth::mcp::seeds
