#include "api/mcp/tools/RunEnd.h"
#include "api/mcp/tools/Toolbox.h"

// The tool `packages`: installs packages in a workspace and reports their state.

namespace hearth::mcp {
namespace {

using controller::PackagesStatus;
using controller::PackagesView;
using controller::Services;

std::string packagesText(const PackagesView& view) {
    std::string text;
    for (const auto& [name, package] : view.packages) {
        text += name + ": " + controller::kPackageStages.of(package.state);
        if (!package.version.empty()) text += " " + package.version;
        if (!package.error.empty()) text += " (" + package.error + ")";
        text += "\n";
    }
    if (view.status == PackagesStatus::Running) {
        return text +
               "Still running. Its end, and what failed: run_status run_id=" + view.execution_id;
    }
    if (!view.error.empty()) text += "Failed: " + view.error + "\n";
    if (text.empty()) text = "Nothing is installed.\n";
    if (view.status == PackagesStatus::Failed) {
        return text + "What the package manager said: run_status run_id=" + view.execution_id;
    }
    text.pop_back();
    return text;
}

Task<ToolResult> packages(const Services& services, CallContext call, Arguments arguments) {
    controller::PackagesRequest request;
    request.manager =
        controller::kPackageManagers.find(arguments.textOr("manager", "auto")).value();
    request.install = arguments.textList("install");
    request.check = arguments.textList("check");
    request.from = arguments.text("from");
    request.wait = arguments.seconds("wait_s").value_or(request.wait);
    request.list = request.install.empty() && request.check.empty() && !request.from;
    const std::string workspace = arguments.textOr("workspace_id", "");
    const auto begun = services.packages.begin(call.who, workspace, request);
    Task<> end = untilEnd(services, std::move(call), begun.execution, OnCancel::Kills,
                          services.clock.now() + request.wait);
    co_await end;
    begun.execution->requireAnswer();
    const PackagesView view = controller::PackageService::viewOf(*begun.execution, begun.names);
    ToolResult result = textResult(packagesText(view));
    result.is_error = view.status == PackagesStatus::Failed;
    co_return result;
}

}  // namespace

std::vector<Tool> packageTools(const Services& services) {
    std::vector<Tool> tools;
    tools.push_back(
        {"packages", "Packages",
         "Installs packages in a workspace whose network is Mirror or Egress, or shows which are "
         "installed; without install, check and from it lists all. They last as long as the "
         "workspace.",
         objectSchema(
             {{"workspace_id", workspaceParam()},
              {"install", textListParam("Names with versions or without, e.g. \"numpy==2.1\" or "
                                        "\"@scope/name@^1\". No options, URLs or paths.",
                                        64)},
              {"check", textListParam("Names to check.", 64)},
              {"from", stringParam("Instead of install, a file that names them: "
                                   "requirements.txt, pyproject.toml, package.json, or a program "
                                   "with a PEP 723 block.")},
              {"manager",
               {{"type", "string"},
                {"enum", controller::kPackageManagers.all()},
                {"description", "auto: npm for scoped names, else pip."}}},
              {"wait_s", numberParam("Answer after this many seconds even if it is not done; "
                                     "default 5.",
                                     0, 60)}},
             {"workspace_id"}),
         toolHints(false, false, true, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return packages(services, call, arguments);
         }});
    return tools;
}

}  // namespace hearth::mcp
