#include "api/mcp/seeds/Seeds.h"

#include <algorithm>
#include <array>

#include "api/mcp/seeds/SeedToolkit.h"
#include "base/Version.h"

namespace hearth::mcp::seeds {
namespace {

using controller::Services;

struct Known {
    const char* name;
    const char* server;  ///< the name its clients may expect
    std::uint16_t port;  ///< 0: it uses stdio
    const char* instructions;
    std::vector<SeedTool> (*tools)(const Services&);
};

constexpr const char* kS0Instructions =
    "Call sandbox_initialize once and keep container_id and workspace_id for the other tools. "
    "Write files with write_file_sandbox, run commands with sandbox_exec, fetch what they made "
    "with copy_file_from_sandbox, and end with clean_workspace. A requirements.txt is installed "
    "before a command that starts Python.\n\n"
    "先调用 sandbox_initialize，之后的调用都带上 container_id 与 workspace_id；"
    "用 write_file_sandbox 写文件，sandbox_exec 执行命令，copy_file_from_sandbox 取回结果，"
    "最后调用 clean_workspace。";
constexpr const char* kS1Instructions =
    "Call create_sandbox once and pass its sandbox_id to the other tools. Code and commands run "
    "in the directory that clients call /app/results; each file that code makes there comes back "
    "as a link. Save figures with savefig.\n\n"
    "先调用 create_sandbox，之后传入 sandbox_id。代码生成的文件会以链接形式返回，"
    "图形请用 savefig 保存。";
constexpr const char* kS2Instructions =
    "Call initialize_sandbox, then execute_code as often as needed: files stay between calls, "
    "variables do not. End with stop_sandbox. There is no network.\n\n"
    "先调用 initialize_sandbox，再多次调用 execute_code，最后调用 stop_sandbox；沙箱没有网络。";
constexpr const char* kS3Instructions =
    "1. create_python_env gives a container_id for all other calls. 2. install_package_in_env "
    "starts to install a package and may answer \"installing\"; check_package_status tells when it "
    "is there. 3. execute_python_code runs code and gives output, errors and a link for each file "
    "that it made. Save figures with plt.savefig() and tables with to_csv() or to_excel() rather "
    "than showing them.\n\n"
    "一、create_python_env 返回 container_id。二、install_package_in_env 异步安装，"
    "用 check_package_status 查询。三、execute_python_code 运行代码，返回输出、错误和文件链接。"
    "图形用 plt.savefig() 保存，数据用 to_csv() 或 to_excel() 保存。";

const std::array<Known, 4> kKnown{{
    {"s0", "code-sandbox-mcp", 9520, kS0Instructions, s0Tools},
    {"s1", "MCP Sandbox", 8000, kS1Instructions, s1Tools},
    {"s2", "Docker Code Sandbox", 0, kS2Instructions, s2Tools},
    {"s3", "Python Docker Executor 🐳", 8000, kS3Instructions, s3Tools},
}};

const Known* findKnown(std::string_view name) {
    const auto found = std::find_if(kKnown.begin(), kKnown.end(),
                                    [&](const Known& known) { return known.name == name; });
    return found == kKnown.end() ? nullptr : &*found;
}

ToolResult failed(const std::function<Json(const Error&)>& failure, const Error& error) {
    Json value = failure(error);
    if (const auto* local = dynamic_cast<const LocalPathError*>(&error)) {
        value[local->key()] = local->url();
    }
    return valueResult(value);
}

/// The same work with its errors in the seed's form.
Task<ToolResult> shapedWork(Task<ToolResult> work, std::function<Json(const Error&)> failure) {
    try {
        ToolResult result = co_await work;
        co_return result;
    } catch (const Error& error) {
        co_return failed(failure, error);
    }
}

/// Returns the tool with errors in the seed's form. These are not MCP errors: the seeds' clients
/// read them as results.
Tool shaped(const SeedTool& seed) {
    Tool tool = seed.tool;
    if (!seed.failure) return tool;
    tool.handler = [handler = seed.tool.handler, failure = seed.failure](
                       const CallContext& call, const Arguments& arguments) -> ToolOutcome {
        try {
            ToolOutcome outcome = handler(call, arguments);
            auto* work = std::get_if<Task<ToolResult>>(&outcome);
            if (work == nullptr) return outcome;
            return shapedWork(std::move(*work), failure);
        } catch (const Error& error) {
            return failed(failure, error);
        }
    };
    return tool;
}

}  // namespace

std::vector<Seed> seeds(const Services& services) {
    std::vector<Seed> all;
    for (const Known& known : kKnown) {
        Seed seed;
        seed.name = known.name;
        seed.server_info = {{"name", known.server}, {"version", kHearthVersion}};
        seed.instructions = known.instructions;
        for (SeedTool& tool : known.tools(services)) {
            seed.tools.push_back(shaped(tool));
            seed.bare.push_back(std::move(tool.tool));
        }
        all.push_back(std::move(seed));
    }
    return all;
}

Json plainValue(const ToolResult& result) {
    const Json& value = result.structured;
    if (value.is_object() && value.size() == 1 && value.contains("result")) return value["result"];
    return value;
}

bool isSeed(std::string_view name) {
    return findKnown(name) != nullptr;
}

std::optional<std::uint16_t> seedPort(std::string_view name) {
    const Known* known = findKnown(name);
    if (known == nullptr || known->port == 0) return std::nullopt;
    return known->port;
}

}  // namespace hearth::mcp::seeds
