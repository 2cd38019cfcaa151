#include "api/mcp/server/Prompts.h"
#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {
namespace {

std::string poolLines(const controller::Services& services, const controller::Principal& who) {
    const Json capabilities = services.capabilities();
    std::string lines;
    for (const controller::PoolView& view : services.pools.list(who)) {
        if (view.pool->deleting) continue;
        lines += "- " + poolFacts(view, imageLanguages(capabilities, view.pool->spec.image)) + "\n";
    }
    return lines;
}

std::string english(const std::string& pools) {
    return "You can run code in isolated sandboxes. Work in this order:\n"
           "1. For one calculation, call run with code (and language) or command, without "
           "workspace_id. The sandbox is destroyed afterwards.\n"
           "2. To keep files between steps, call workspace_open once and pass its workspace_id to "
           "every run. Give the same context, e.g. \"main\", where variables must stay too.\n"
           "3. Bring data with file_put or with the files argument of run.\n"
           "4. Where a package is missing, name it in the packages argument of run, or call "
           "packages. That needs a pool whose network is Mirror or Egress.\n"
           "5. Save figures and tables to files, or just show them: what a run makes comes back "
           "with it, images as images, the rest with links. Give the links to the user.\n"
           "6. Work longer than about 50 seconds runs with background=true; ask run_status.\n"
           "7. Close the workspace with workspace_close when all is done.\n"
           "An error says what to do next: follow it instead of repeating the call.\n"
           "The pools here:\n" +
           pools;
}

std::string chinese(const std::string& pools) {
    return "你可以在隔离的沙箱里运行代码。请按下面的顺序工作：\n"
           "1. 只算一次：调用 run，给出 code（和 language）或 command，不给 workspace_id，"
           "运行后沙箱即销毁。\n"
           "2. 需要在多步之间保留文件：先调用一次 workspace_open，之后每次 run 都传入它的 "
           "workspace_id；变量也要保留时，再给同一个 context，例如 \"main\"。\n"
           "3. 用 file_put 或 run 的 files 参数送入数据。\n"
           "4. 缺少软件包时，在 run 的 packages 参数里写明，或调用 packages；"
           "这需要网络模式为 Mirror 或 Egress 的池。\n"
           "5. 图和表可以存成文件，也可以直接显示：运行产生的内容会随结果返回，图片直接给出，"
           "其他文件给出链接。请把链接交给用户。\n"
           "6. 超过约 50 秒的任务请设 background=true，再用 run_status 查询。\n"
           "7. 全部完成后调用 workspace_close。\n"
           "出错信息会说明下一步怎么做，请照做，不要只是重复调用。\n"
           "这里的池：\n" +
           pools;
}

}  // namespace

std::vector<Prompt> nativePrompts(const controller::Services& services) {
    Prompt guide;
    guide.name = "sandbox_guide";
    guide.title = "How to work with sandboxes";
    guide.description =
        "How to run code, keep files, install packages and hand results to the user with these "
        "tools, and which pools there are. 如何使用这些沙箱工具。";
    guide.arguments = {{"language", "\"en\" (default) or \"zh\".", false, {"en", "zh"}}};
    guide.make = [&services](const CallContext& context, const Json& arguments) -> PromptOutcome {
        const std::string language = stringMember(arguments, "language").value_or("en");
        if (language != "en" && language != "zh") {
            throw RpcFailure({rpc::kInvalidParams, "language must be en or zh", {}});
        }
        const std::string pools = poolLines(services, context.who);
        return Json{
            {"description", language == "zh" ? "如何使用沙箱" : "How to work with sandboxes"},
            {"messages",
             Json::array({promptMessage(
                 "user", textContent(language == "zh" ? chinese(pools) : english(pools)))})}};
    };
    return {std::move(guide)};
}

}  // namespace hearth::mcp
