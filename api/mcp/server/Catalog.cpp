#include "api/mcp/server/Catalog.h"

#include "base/Version.h"

namespace hearth::mcp {
namespace {

constexpr const char* kInstructions =
    "Hearth runs code in isolated sandboxes that are kept warm, so opening one takes about a "
    "millisecond. For a single calculation call run with code or command and no workspace: it is "
    "a one shot and leaves nothing behind. To keep files between calls, call workspace_open once, "
    "pass its workspace_id to run, file_put and file_get, and call workspace_close at the end. "
    "Files survive between runs; variables do where every run names the same context, e.g. "
    "\"main\". Pictures that a run shows or saves come back with it, other files as links. Missing "
    "packages: the packages argument of run, or the tool packages, in a pool whose network is "
    "Mirror or Egress. For work longer than about 50 seconds pass background=true and ask "
    "run_status. An error says what to do next. pool_list shows languages and limits.\n\n"
    "Hearth 在隔离的沙箱中运行代码。只算一次：直接调用 run（给 code 或 command，不给 "
    "workspace_id），运行后沙箱即销毁。需要保留文件：先调用 workspace_open，之后在 run、file_put、"
    "file_get 中传入 workspace_id，用完调用 "
    "workspace_close。文件在两次运行之间保留；每次 run 给出同一个 context（例如 "
    "\"main\"）时，变量也保留。运行中显示或保存的图片会随结果返回，其他文件以链接给出。缺少软件包："
    "用 run 的 packages 参数或 packages 工具，需要网络模式为 Mirror 或 Egress "
    "的池。耗时较长的任务请设 "
    "background=true，再用 run_status 查询。出错信息会说明下一步怎么做。";

}  // namespace

Catalog nativeCatalog(const controller::Services& services) {
    return {.server_info = {{"name", "hearth"}, {"title", "Hearth"}, {"version", kHearthVersion}},
            .instructions = kInstructions,
            .tools = Toolbox(services, nativeTools(services)),
            .prompts = Prompts(nativePrompts(services)),
            .resources = Resources(nativeResources(services)),
            .tools_change = true};  // because they name the pools
}

}  // namespace hearth::mcp
