#include "api/mcp/seeds/NamedLocks.h"
#include "api/mcp/seeds/SeedPackages.h"
#include "api/mcp/seeds/SeedToolkit.h"
#include "base/http/Url.h"

// S1: sandboxes with ids, Python code and terminal commands, packages in lists, links as texts.

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionView;
using controller::PackagesStatus;
using controller::PackageStage;
using controller::PackagesView;
using controller::Services;
using controller::WorkspaceView;

constexpr std::size_t kPage = 1000;
constexpr std::size_t kMostListed = 10'000;
constexpr std::size_t kShortId = 12;  // as in the container engine

/// Returns the caller's own workspaces only, although an operator may see every tenant's.
std::vector<WorkspaceView> own(const Services& services, const CallContext& call) {
    std::vector<WorkspaceView> all;
    controller::ListQuery query;
    query.limit = kPage;
    do {
        auto page = services.workspaces.list(call.who, query);
        for (WorkspaceView& view : page.items) {
            if (view.tenant == call.who.tenant) all.push_back(std::move(view));
        }
        query.cursor = page.next_cursor;
    } while (!query.cursor.empty() && all.size() < kMostListed);
    return all;
}

std::string shortId(const std::string& id) {
    const std::size_t from = id.starts_with("ws_") ? 3 : 0;
    return id.substr(from, kShortId);
}

ToolOutcome listSandboxes(const Services& services, const CallContext& call) {
    std::map<std::string, std::string> images;
    for (const controller::PoolView& view : services.pools.list(call.who)) {
        images[view.pool->name] =
            view.pool->on_demand.empty() ? view.pool->spec.image : view.pool->on_demand;
    }
    Json out = Json::array();
    for (const WorkspaceView& view : own(services, call)) {
        out.push_back({{"sandbox_id", view.id},
                       {"sandbox_short_id", shortId(view.id)},
                       {"name", view.name.value_or(view.id)},
                       {"status", controller::isOpen(view.phase)
                                      ? "running"
                                      : toLower(controller::kWorkspacePhases.of(view.phase))},
                       {"image", images[view.pool]},
                       {"created", view.created_at},
                       {"last_used", view.last_active_at}});
    }
    return valueResult(out);
}

Task<ToolResult> createSandbox(const Services& services, std::shared_ptr<NamedLocks> turns,
                               CallContext call, Arguments arguments) {
    Wish wish;
    wish.name = arguments.text("name");
    if (wish.name && wish.name->empty()) wish.name.reset();
    std::shared_ptr<void> turn;
    if (wish.name) {
        Task<std::shared_ptr<void>> taking =
            turns->take(call.who.tenant + "\n" + *wish.name, services.clock.now() + call.patience);
        turn = co_await taking;
        for (const WorkspaceView& view : own(services, call)) {
            if (view.name != wish.name) continue;
            throw Error(ErrorCode::Conflict, "you have a sandbox named " + *wish.name)
                .hint("use it, its sandbox_id is " + view.id + ", or take another name");
        }
    }
    Task<WorkspaceView> opening = openWorkspace(services, call, std::move(wish));
    const WorkspaceView view = co_await opening;
    const std::string name = view.name.value_or(view.id);
    const Json out{
        {"sandbox_id", view.id}, {"sandbox_name", name}, {"name", name}, {"status", "active"}};
    co_return tellingOf(view, services, call, valueResult(out));
}

std::string installedText(const PackagesView& view) {
    std::string text;
    for (const auto& [name, package] : view.packages) {
        text += (text.empty() ? "installed: " : ", ") + name + " " + package.version;
    }
    return toUtf8(text);
}

ToolOutcome installInSandbox(const Services& services, const CallContext& call,
                             const Arguments& arguments) {
    const std::vector<std::string> specs = arguments.textList("package_names");
    if (specs.empty()) throw Error(ErrorCode::InvalidArgument, "package_names is empty");
    return installPackages(
        services, call, *arguments.text("sandbox_id"), specs, std::nullopt,
        [&services, specs](const PackagesView& view, const ExecutionView& run) {
            const bool good = view.status == PackagesStatus::Done;
            Json out{{"status", good ? "success" : "failed"},
                     {"message", good ? installedText(view) : packageFault(view)}};
            if (!good && !run.stderr_bytes.empty()) {
                out["stderr"] = clip(run.stderr_bytes, kTextCap).text;
            }
            out["complete"] = true;
            out["success"] = good;
            out["end_time"] = static_cast<double>(toUnixMillis(services.clock.wall())) / 1000.0;
            out["packages"] = specs;
            return valueResult(out);
        });
}

Json installFailure(const Error& error) {
    return {{"status", "failed"},
            {"message", inWords(error)},
            {"complete", true},
            {"success", false},
            {"packages", Json::array()}};
}

ToolOutcome checkInstallation(const Services& services, const CallContext& call,
                              const Arguments& arguments) {
    const std::vector<std::string> specs = arguments.textList("package_names");
    if (specs.empty()) throw Error(ErrorCode::InvalidArgument, "package_names is empty");
    return checkPackages(
        services, call, *arguments.text("sandbox_id"), specs,
        [specs](const PackagesView& view, const ExecutionView&) {
            Json packages = Json::object();
            std::size_t there = 0;
            for (const std::string& spec : specs) {
                const auto found = view.packages.find(nameIn(spec));
                const bool installed =
                    found != view.packages.end() && found->second.state == PackageStage::Installed;
                Json one{{"installed", installed}};
                if (installed) one["version"] = toUtf8(found->second.version);
                packages[spec] = std::move(one);
                there += installed ? 1 : 0;
            }
            if (view.status != PackagesStatus::Done) {
                return valueResult({{"status", "failed"},
                                    {"message", packageFault(view)},
                                    {"packages", std::move(packages)}});
            }
            return valueResult({{"status", "success"},
                                {"message", std::to_string(there) + " of " +
                                                std::to_string(specs.size()) + " installed"},
                                {"packages", std::move(packages)}});
        });
}

ToolOutcome terminalCommand(const Services& services, const CallContext& call,
                            const Arguments& arguments) {
    controller::ExecutionRequest request;
    request.command = arguments.text("command");
    request.timeout = kLongestRun;
    request.started_at = call.started_at;
    const auto execution =
        services.executions.start(call.who, *arguments.text("sandbox_id"), request);
    return whenEnded(services, call, execution, [](const ExecutionView& view) {
        Json out{{"stdout", toUtf8(view.stdout_bytes)},
                 {"stderr", toUtf8(view.stderr_bytes)},
                 {"exit_code", exitCode(view)}};
        if (const auto why = brokenOff(view)) out["error"] = *why;
        if (view.truncated) out["truncated"] = true;
        return valueResult(out);
    });
}

ToolOutcome uploadFile(const Services& services, const CallContext& call,
                       const Arguments& arguments) {
    const std::string local = *arguments.text("local_file_path");
    const std::string folder = pathInWorkspace(arguments.textOr("dest_path", "."));
    const WorkspaceView view = services.workspaces.get(call.who, *arguments.text("sandbox_id"));
    const std::string path = joinedPath(folder, baseName(local));
    throw LocalPathError("local_file_path", "upload_url", uploadUrl(call, view.id, path),
                         "PUT the file's bytes to");
}

Json sandboxParam() {
    return stringParam("The sandbox_id that create_sandbox gave.");
}

void addSandboxes(const Services& services, std::vector<SeedTool>& tools) {
    const auto turns = std::make_shared<NamedLocks>();
    tools.push_back({{"list_sandboxes", "List sandboxes",
                      "Lists your sandboxes: ids, names, images, when they were last used.",
                      objectSchema(Json::object()), toolHints(true, false, true),
                      [&services](const CallContext& call, const Arguments&) {
                          return listSandboxes(services, call);
                      }}});
    tools.push_back(
        {{"create_sandbox", "Create a sandbox",
          "Gives a sandbox of your own with Python. Pass its sandbox_id to the other tools.",
          objectSchema({{"name", optionalText("A name of yours for it.")}}),
          toolHints(false, false, false),
          [&services, turns](const CallContext& call, const Arguments& arguments) {
              return createSandbox(services, turns, call, arguments);
          }}});
}

void addPackages(const Services& services, std::vector<SeedTool>& tools) {
    const Json schema =
        objectSchema({{"sandbox_id", sandboxParam()},
                      {"package_names",
                       {{"type", "array"},
                        {"items", {{"type", "string"}, {"minLength", 1}}},
                        {"description", "Packages of an index, with versions or without."}}}},
                     {"sandbox_id", "package_names"});
    tools.push_back({{"install_packages_in_sandbox", "Install packages",
                      "Installs Python packages in a sandbox and answers when that is done.",
                      schema, toolHints(false, false, true),
                      [&services](const CallContext& call, const Arguments& arguments) {
                          return installInSandbox(services, call, arguments);
                      }},
                     installFailure});
    tools.push_back({{"check_packages_installation_status", "Check packages",
                      "Tells which Python packages a sandbox has, and their versions.", schema,
                      toolHints(true, false, true),
                      [&services](const CallContext& call, const Arguments& arguments) {
                          return checkInstallation(services, call, arguments);
                      }},
                     [](const Error& error) {
                         return Json{{"status", "failed"},
                                     {"message", inWords(error)},
                                     {"packages", Json::object()}};
                     }});
}

void addRuns(const Services& services, std::vector<SeedTool>& tools) {
    tools.push_back(
        {{"execute_python_code", "Execute Python code",
          "Runs Python code in a sandbox; gives its output, its exit code and a link "
          "for each file that it made.",
          objectSchema({{"sandbox_id", sandboxParam()}, {"code", stringParam("The program.", 0)}},
                       {"sandbox_id", "code"}),
          toolHints(false, false, false),
          [&services](const CallContext& call, const Arguments& arguments) {
              return runPython(services, call, *arguments.text("sandbox_id"),
                               *arguments.text("code"), FileLinks::Texts);
          }},
         [](const Error& error) { return pythonFailure(error, FileLinks::Texts); }});
    tools.push_back({{"execute_terminal_command", "Execute a command",
                      "Runs a command line in a sandbox by a shell: pipes and && work.",
                      objectSchema({{"sandbox_id", sandboxParam()},
                                    {"command", stringParam("The command line.")}},
                                   {"sandbox_id", "command"}),
                      toolHints(false, true, false),
                      [&services](const CallContext& call, const Arguments& arguments) {
                          return terminalCommand(services, call, arguments);
                      }},
                     [](const Error& error) {
                         return Json{{"stdout", ""}, {"stderr", inWords(error)}, {"exit_code", -1}};
                     }});
}

void addUpload(const Services& services, std::vector<SeedTool>& tools) {
    tools.push_back(
        {{"upload_file_to_sandbox", "Upload a file",
          "Copies a file of your machine into a sandbox. Through the bridge `hearth mcp` it is "
          "done at once; else the answer says where to PUT the bytes.",
          objectSchema({{"sandbox_id", sandboxParam()},
                        {"local_file_path", stringParam("The file on your machine.")},
                        {"dest_path",
                         withDefault(stringParam("The directory to copy it to."), "/app/results")}},
                       {"sandbox_id", "local_file_path"}),
          toolHints(false, false, true),
          [&services](const CallContext& call, const Arguments& arguments) {
              return uploadFile(services, call, arguments);
          }},
         [](const Error& error) {
             return Json{{"error", true}, {"message", inWords(error)}};
         }});
}

}  // namespace

std::vector<SeedTool> s1Tools(const Services& services) {
    std::vector<SeedTool> tools;
    addSandboxes(services, tools);
    addPackages(services, tools);
    addRuns(services, tools);
    addUpload(services, tools);
    return tools;
}

}  // namespace hearth::mcp::seeds
