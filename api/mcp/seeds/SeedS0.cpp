#include <algorithm>

#include "api/files/WorkspaceFile.h"
#include "api/mcp/seeds/CommandSeries.h"
#include "api/mcp/seeds/SeedToolkit.h"
#include "controller/packages/PackageSpec.h"

// S0: a container id and a workspace id, which both name the workspace here; commands in series;
// files by name and directory.

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionView;
using controller::Services;
using controller::WorkspaceView;

constexpr const char* kDefaultImage = "python:3.9-slim";
constexpr const char* kRequirements = "requirements.txt";
constexpr std::uint64_t kLongestRequirements = 64U << 10U;
constexpr std::uint64_t kOutput = 4U << 20U;
constexpr std::size_t kMostCommands = 200;
constexpr std::size_t kMostLogs = 50;
constexpr std::size_t kLongestLogs = 256U << 10U;

/// Returns the workspace that a call means: workspace_id if that is given. Then container_id may
/// name another workspace of the caller, because the seed had one container for all workspaces. An
/// id that is not the caller's is refused in either argument.
std::string workspaceOf(const Services& services, const CallContext& call,
                        const Arguments& arguments) {
    const std::string container = *arguments.text("container_id");
    std::string workspace = arguments.textOr("workspace_id", container);
    if (container.empty() || workspace.empty()) {
        throw Error(ErrorCode::InvalidArgument,
                    std::string(container.empty() ? "container_id" : "workspace_id") + " is empty")
            .hint("pass what sandbox_initialize gave");
    }
    if (workspace != container) {
        try {
            services.workspaces.get(call.who, container);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::Gone) throw;
        }
    }
    return workspace;
}

Task<ToolResult> initialized(const Services& services, CallContext call, Arguments arguments) {
    Wish wish;
    // A left-out image does not become the default image: such a caller gets a warm Python at
    // once.
    wish.image = arguments.text("image");
    wish.default_image = kDefaultImage;
    const Json* persistent_given = member(arguments.values(), "use_persistent");
    const bool persistent = persistent_given == nullptr || arguments.flag("use_persistent");
    Task<WorkspaceView> opening = openWorkspace(services, call, std::move(wish));
    const WorkspaceView view = co_await opening;
    Json out{{"success", true}, {"container_id", view.id}};
    if (persistent) {
        out["workspace_id"] = view.id;
        out["workspace_path"] = view.root;
    }
    out["mode"] = persistent ? "persistent" : "standalone";
    out["message"] = "a sandbox of your own, of pool " + view.pool;
    co_return tellingOf(view, services, call, valueResult(out));
}

ToolOutcome initialize(const Services& services, const CallContext& call,
                       const Arguments& arguments) {
    return initialized(services, call, arguments);
}

/// True if the command line starts Python: "python x.py", "cd a && python3 -m b".
bool startsPython(const std::string& command) {
    bool at_start = true;
    for (std::size_t at = 0; at < command.size();) {
        if (command[at] == ' ' || command[at] == '\t') {
            ++at;
            continue;
        }
        if (std::string_view(";&|\n(").find(command[at]) != std::string_view::npos) {
            at_start = true;
            ++at;
            continue;
        }
        const std::size_t end = std::min(command.find_first_of(" \t;&|\n()", at), command.size());
        const std::string word = baseName(command.substr(at, end - at));
        const bool assignment = at_start && word.find('=') != std::string::npos;
        if (at_start && word.starts_with("python") &&
            word.find_first_not_of("0123456789.", 6) == std::string::npos) {
            return true;
        }
        at_start = assignment;
        at = end;
    }
    return false;
}

std::string_view trimmedLine(std::string_view line) {
    const std::size_t comment = line.starts_with('#') ? 0 : line.find(" #");
    line = line.substr(0, comment);
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

/// Returns the packages of a requirements.txt. Options and URLs are refused.
std::vector<std::string> requirementsIn(std::string_view text) {
    std::vector<std::string> specs;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string spec(trimmedLine(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (spec.empty()) continue;
        if (const auto why = controller::wrongSpec(spec, controller::PackageManager::Pip)) {
            throw Error(ErrorCode::InvalidArgument,
                        "requirements.txt: \"" + toUtf8(spec.substr(0, 100)) + "\" " + *why);
        }
        specs.push_back(spec);
    }
    return specs;
}

/// Returns the packages to install before the commands. Without a network it returns none, because
/// the image may have them all; if not, Python reports the missing ones.
std::vector<std::string> requirementsFor(const Services& services, const CallContext& call,
                                         const std::string& workspace,
                                         const std::vector<std::string>& commands) {
    if (std::none_of(commands.begin(), commands.end(), startsPython) ||
        services.workspaces.get(call.who, workspace).network == egress::NetworkMode::None) {
        return {};
    }
    std::string text;
    try {
        services.workspaces.readFile(
            call.who, workspace, kRequirements, 0, kLongestRequirements, [](const auto&) {},
            [&text](std::string_view bytes) {
                text += bytes;
                return text.size() < kLongestRequirements;
            });
    } catch (const Error& error) {
        if (error.code() == ErrorCode::NotFound) return {};
        throw;
    }
    return requirementsIn(text);
}

ToolResult execResult(const std::vector<std::string>& commands, const std::string& mark,
                      const ExecutionView& view) {
    const std::optional<std::string> why = brokenOff(view);
    Json out{{"success", !why}, {"results", Json::array()}};
    const bool begun = !view.packages || view.packages->done;
    for (const CommandResult& one :
         begun ? seriesResults(commands, mark, view) : std::vector<CommandResult>{}) {
        out["results"].push_back({{"command", one.command},
                                  {"exit_code", one.exit_code},
                                  {"stdout", toUtf8(one.stdout_bytes)},
                                  {"stderr", toUtf8(one.stderr_bytes)},
                                  {"success", one.exit_code == 0}});
    }
    if (why) out["error"] = *why;
    if (view.truncated) out["truncated"] = true;
    if (view.packages) {
        out["installed"] = Json::object();
        for (const auto& [name, version] : view.packages->installed) {
            out["installed"][toUtf8(name)] = toUtf8(version);
        }
    }
    return valueResult(out);
}

ToolOutcome exec(const Services& services, const CallContext& call, const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    const std::vector<std::string> commands = arguments.textList("commands");
    if (commands.empty()) {
        services.workspaces.get(call.who, workspace);
        return valueResult({{"success", true}, {"results", Json::array()}});
    }
    for (const std::string& command : commands) {
        if (command.size() <= kLongestCommand) continue;
        throw Error(ErrorCode::InvalidArgument,
                    "a command has more than " + std::to_string(kLongestCommand) + " bytes")
            .hint("write it to a file with write_file_sandbox and run that");
    }
    const CommandSeries series = commandSeries(commands);
    controller::ExecutionRequest request;
    request.argv = series.argv;
    request.timeout = kLongestRun;
    request.output_limit = kOutput;
    request.packages = requirementsFor(services, call, workspace, commands);
    request.started_at = call.started_at;
    return whenEnded(services, call, services.executions.start(call.who, workspace, request),
                     [commands, mark = series.mark](const ExecutionView& view) {
                         return execResult(commands, mark, view);
                     });
}

ToolOutcome writeFile(const Services& services, const CallContext& call,
                      const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    const std::string path =
        joinedPath(pathInWorkspace(arguments.textOr("dest_dir", "")), *arguments.text("file_name"));
    const WorkspaceView view = services.workspaces.get(call.who, workspace);
    writeText(services, call, workspace, path, *arguments.text("file_contents"));
    return valueResult({{"success", true}, {"file_path", pathInSandbox(view, path)}});
}

ToolOutcome copyFile(const Services& services, const CallContext& call,
                     const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    services.workspaces.get(call.who, workspace);
    const std::string path =
        arguments.textOr("dest_path", baseName(*arguments.text("local_src_file")));
    throw LocalPathError("local_src_file", "upload_url", uploadUrl(call, workspace, path),
                         "PUT the file's bytes to");
}

ToolOutcome copyProject(const Services& services, const CallContext& call,
                        const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    services.workspaces.get(call.who, workspace);
    const std::string path =
        arguments.textOr("dest_dir", baseName(*arguments.text("local_src_dir")));
    throw LocalPathError("local_src_dir", "upload_url", archiveUrl(call, workspace, path),
                         "PUT a tar of the directory to");
}

ToolOutcome copyFromSandbox(const Services& services, const CallContext& call,
                            const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    const std::string path = pathInWorkspace(*arguments.text("container_src_path"));
    const agent::FileStat stat = api::workspaceFile(services, call.who, workspace, path).stat;
    const std::string url = fileLink(services, call, workspace, path);
    if (arguments.text("local_dest_path")) {
        throw LocalPathError("local_dest_path", "download_url", url, "GET the file from");
    }
    return valueResult(
        {{"success", true}, {"local_path", nullptr}, {"file_size", stat.size}, {"url", url}});
}

/// Ends the sandbox for clean_workspace and sandbox_stop, alone or in either order.
ToolOutcome close(const Services& services, const CallContext& call, const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    try {
        // Closing is idempotent: only get() shows whether the workspace still exists.
        services.workspaces.get(call.who, workspace);
        services.workspaces.close(call.who, workspace);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::Gone) throw;
        return valueResult({{"success", true}, {"message", "already gone"}});
    }
    return valueResult({{"success", true}, {"message", "destroyed"}});
}

ToolOutcome logs(const Services& services, const CallContext& call, const Arguments& arguments) {
    const std::string workspace = workspaceOf(services, call, arguments);
    std::string text;
    const auto executions = services.executions.list(call.who, workspace);  // newest first
    const std::size_t most = std::min(executions.size(), kMostLogs);
    for (std::size_t i = 0; i < most && text.size() < kLongestLogs; ++i) {
        const auto execution = services.executions.listed(call.who, executions[i].id);
        if (!execution) continue;
        const std::uint64_t room = kLongestLogs - text.size();
        text.insert(0, withoutMarks(mergedOutput(*execution, room)));
    }
    return valueResult({{"success", true}, {"logs", toUtf8(text)}});
}

Json s0Failure(const Error& error) {
    return {{"success", false}, {"error", inWords(error)}};
}

/// One line of the table of tools.
struct S0Row {
    const char* name;
    const char* title;
    const char* description;
    Json schema;
    Json hints;
    ToolOutcome (*handle)(const Services&, const CallContext&, const Arguments&);
};

Json containerParam() {
    return stringParam("The container_id that sandbox_initialize gave.", 0);
}

Json workspaceIdParam() {
    return optionalText("The workspace_id that sandbox_initialize gave.");
}

Json localParam() {
    return stringParam(
        "On your machine: through the bridge `hearth mcp` it is read "
        "at once, else the answer says where to PUT it.");
}

std::vector<S0Row> commandRows() {
    return {
        {"sandbox_initialize", "Initialize a sandbox",
         "Gives a sandbox of your own: container_id and, unless use_persistent is false, "
         "workspace_id. The default image stands for any Python; another is refused if the server "
         "does not have it.",
         objectSchema({{"image", withDefault(stringParam("The image to use."), kDefaultImage)},
                       {"use_persistent",
                        withDefault(boolParam("Whether workspace_id is given, too."), true)}}),
         toolHints(false, false, false), initialize},
        {"sandbox_exec", "Run commands",
         "Runs commands one after the other by a shell, until one fails; gives what each wrote. "
         "Before a command that starts Python, requirements.txt is installed.",
         objectSchema({{"container_id", containerParam()},
                       {"commands",
                        {{"type", "array"},
                         {"items", {{"type", "string"}}},
                         {"maxItems", kMostCommands},
                         {"description", "Command lines, in order."}}},
                       {"workspace_id", workspaceIdParam()}},
                      {"container_id", "commands"}),
         toolHints(false, true, false), exec}};
}

std::vector<S0Row> fileRows() {
    return {
        {"write_file_sandbox", "Write a file", "Writes a text file into a sandbox.",
         objectSchema({{"container_id", containerParam()},
                       {"file_name", stringParam("Its name.")},
                       {"file_contents", stringParam("Its content.", 0)},
                       {"workspace_id", workspaceIdParam()},
                       {"dest_dir", optionalText("Its directory, relative to the workspace.")}},
                      {"container_id", "file_name", "file_contents"}),
         toolHints(false, true, true), writeFile},
        {"copy_file", "Copy a file in", "Copies a file of your machine into a sandbox.",
         objectSchema({{"container_id", containerParam()},
                       {"local_src_file", localParam()},
                       {"workspace_id", workspaceIdParam()},
                       {"dest_path", optionalText("Where to; without it under its own name.")}},
                      {"container_id", "local_src_file"}),
         toolHints(false, true, true), copyFile},
        {"copy_project", "Copy a directory in",
         "Copies a directory of your machine, with all that is in it, into a sandbox.",
         objectSchema({{"container_id", containerParam()},
                       {"local_src_dir", localParam()},
                       {"workspace_id", workspaceIdParam()},
                       {"dest_dir", optionalText("Where to; without it under its own name.")}},
                      {"container_id", "local_src_dir"}),
         toolHints(false, true, true), copyProject},
        {"copy_file_from_sandbox", "Copy a file out",
         "Gives a file of a sandbox: through the bridge `hearth mcp` it is saved on your machine, "
         "else the answer has a link to it.",
         objectSchema({{"container_id", containerParam()},
                       {"container_src_path", stringParam("The file in the sandbox.")},
                       {"workspace_id", workspaceIdParam()},
                       {"local_dest_path", optionalText("Where to save it on your machine.")}},
                      {"container_id", "container_src_path"}),
         toolHints(true, false, true), copyFromSandbox}};
}

std::vector<S0Row> endRows() {
    return {
        {"sandbox_stop", "Stop a sandbox", "Ends your sandbox with its files.",
         objectSchema({{"container_id", containerParam()},
                       {"is_persistent", withDefault(boolParam("Makes no difference."), false)}},
                      {"container_id"}),
         toolHints(false, true, true), close},
        {"clean_workspace", "Clean a workspace", "Ends the workspace with its files.",
         objectSchema({{"container_id", containerParam()},
                       {"workspace_id", stringParam("The workspace_id of it.", 0)}},
                      {"container_id", "workspace_id"}),
         toolHints(false, true, true), close},
        {"get_container_logs", "Read the logs", "Gives the output of the last commands.",
         objectSchema({{"container_id", containerParam()}}, {"container_id"}),
         toolHints(true, false, true), logs}};
}

}  // namespace

std::vector<SeedTool> s0Tools(const Services& services) {
    std::vector<SeedTool> tools;
    for (const std::vector<S0Row>& rows : {commandRows(), fileRows(), endRows()}) {
        for (const S0Row& row : rows) {
            const auto handler = [&services, handle = row.handle](const CallContext& call,
                                                                  const Arguments& arguments) {
                return handle(services, call, arguments);
            };
            tools.push_back({{row.name, row.title, row.description, row.schema, row.hints, handler},
                             s0Failure});
        }
    }
    return tools;
}

}  // namespace hearth::mcp::seeds
