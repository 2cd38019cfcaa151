#include "api/mcp/tools/Toolbox.h"

#include <iterator>

#include "base/Ids.h"
#include "base/Units.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::mcp {
namespace {

/// The most bytes of a description's list of pools.
constexpr std::size_t kPoolsLine = 400;

void addTo(std::vector<Tool>& all, std::vector<Tool> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::string replaced(std::string text, const std::string& mark, const std::string& with) {
    if (const std::size_t at = text.find(mark); at != std::string::npos) {
        text.replace(at, mark.size(), with);
    }
    return text;
}

std::vector<std::string> textsOf(const Json& array) {
    std::vector<std::string> out;
    for (const Json& one : array) {
        if (one.is_string()) out.push_back(one.get<std::string>());
    }
    return out;
}

/// Returns the pools in one line. A model pays for it in each conversation, and two tools have it.
std::string poolsLine(const controller::Services& services, const controller::Principal& who) {
    const Json capabilities = services.capabilities();
    std::string line;
    std::size_t left_out = 0;
    for (const controller::PoolView& view : services.pools.list(who)) {
        if (view.pool->deleting) continue;
        const std::string facts =
            poolFacts(view, imageLanguages(capabilities, view.pool->spec.image));
        // Adds whole entries only, and none after one that did not fit: the first are the oldest.
        if (left_out > 0 || (!line.empty() && line.size() + facts.size() > kPoolsLine)) {
            ++left_out;
        } else {
            line += (line.empty() ? "" : " | ") + facts;
        }
    }
    if (left_out > 0) line += " | ... and " + std::to_string(left_out) + " more: pool_list";
    return line.empty() ? "none is declared yet" : line;
}

/// The same work; an Error becomes a result.
Task<ToolResult> reported(Task<ToolResult> work, bool steps) {
    try {
        ToolResult result = co_await work;
        co_return result;
    } catch (const Error& error) {
        co_return errorResult(steps ? withNextStep(error) : error);
    }
}

}  // namespace

std::vector<Tool> nativeTools(const controller::Services& services) {
    std::vector<Tool> tools;
    addTo(tools, workspaceTools(services));
    addTo(tools, runTools(services));
    addTo(tools, packageTools(services));
    addTo(tools, fileTools(services));
    return tools;
}

Toolbox::Toolbox(const controller::Services& services, std::vector<Tool> tools)
    : services_(services), tools_(std::move(tools)) {}

Json Toolbox::list(const controller::Principal& who) const {
    const std::string pools = poolsLine(services_, who);
    Json tools = Json::array();
    for (const Tool& tool : tools_) {
        tools.push_back({{"name", tool.name},
                         {"title", tool.title},
                         {"description", replaced(tool.description, "{pools}", pools)},
                         {"inputSchema", tool.schema},
                         {"annotations", tool.annotations}});
    }
    return {{"tools", std::move(tools)}};
}

const Tool* Toolbox::find(const std::string& name) const {
    for (const Tool& tool : tools_) {
        if (tool.name == name) return &tool;
    }
    return nullptr;
}

std::string Toolbox::names() const {
    std::string names;
    for (const Tool& tool : tools_) names += (names.empty() ? "" : ", ") + tool.name;
    return names;
}

ToolOutcome Toolbox::call(const Tool& tool, const CallContext& context, const Json& given) const {
    Json arguments = withoutNulls(tool.schema, given);
    const std::vector<std::string> problems = argumentProblems(tool.schema, arguments);
    if (!problems.empty()) {
        std::string text = "Invalid arguments for " + tool.name + ":";
        for (const std::string& problem : problems) text += "\n- " + problem;
        ToolResult result = textResult(text);
        result.is_error = true;
        return result;
    }
    // The steps name Hearth's own tools; the seeds have others.
    const bool steps = find("workspace_list") != nullptr;
    try {
        ToolOutcome outcome = tool.handler(context, Arguments(std::move(arguments)));
        if (auto* work = std::get_if<Task<ToolResult>>(&outcome)) {
            return reported(std::move(*work), steps);
        }
        return outcome;
    } catch (const Error& error) {
        return errorResult(steps ? withNextStep(error) : error);
    }
}

namespace {

/// "2 GPUs (H100), "; empty without any.
std::string gpuFacts(const controller::GpuSpec& spec) {
    if (spec.count == 0) return {};
    std::string text = std::to_string(spec.count) + (spec.count == 1 ? " GPU" : " GPUs");
    for (std::size_t i = 0; i < spec.products.size(); ++i) {
        text += (i == 0 ? " (" : " or ") + spec.products[i];
    }
    if (!spec.products.empty()) text += ")";
    if (spec.sharing == controller::GpuSharing::Shared) text += " shared with other workspaces";
    return text + ", ";
}

}  // namespace

std::string poolFacts(const controller::PoolView& view, const std::vector<std::string>& languages) {
    const controller::PoolSpec& spec = view.pool->spec;
    std::string text = view.pool->name + ": ";
    for (std::size_t i = 0; i < languages.size(); ++i) {
        text += (i == 0 ? "languages " : ", ") + languages[i];
    }
    if (!languages.empty()) text += "; ";
    const bool offline = spec.network == egress::NetworkMode::None;
    text += formatMilliCpu(spec.limits.milli_cpu) + " cpu, " +
            formatBytes(spec.limits.memory_bytes) + " memory, " +
            formatBytes(spec.limits.workspace_bytes) + " files, " + gpuFacts(spec.gpu) +
            (offline ? "no network"
                     : "network " + std::string(egress::kNetworkModes.of(spec.network))) +
            "; ends after " + formatDuration(spec.idle_timeout) + " idle or " +
            formatDuration(spec.max_lifetime);
    return text;
}

std::vector<std::string> imageLanguages(const Json& capabilities, const std::string& image) {
    if (const Json* images = member(capabilities, "images")) {
        if (const Json* one = member(*images, image)) {
            if (const Json* languages = member(*one, "languages")) return textsOf(*languages);
        }
        for (const Json& one : *images) {
            if (stringMember(one, "name") != image && stringMember(one, "reference") != image) {
                continue;
            }
            if (const Json* languages = member(one, "languages")) return textsOf(*languages);
        }
    }
    if (const Json* languages = member(capabilities, "languages")) {
        if (languages->is_array()) return textsOf(*languages);
        if (const Json* one = member(*languages, image)) return textsOf(*one);
    }
    return {};
}

Json gpusParam() {
    return integerParam("Picks a pool whose sandboxes have so many GPUs.", 1, pool::kMostGpus);
}

std::optional<controller::GpuWish> gpuWish(const Arguments& arguments) {
    const auto count = arguments.number("gpus");
    if (!count) return std::nullopt;
    return controller::GpuWish{static_cast<std::uint32_t>(*count), {}};
}

controller::WorkspaceRequest claimFor(const CallContext& call) {
    controller::WorkspaceRequest request;
    request.started_at = call.started_at;
    request.patience = call.patience;
    return request;
}

ToolResult tellingOf(const controller::WorkspaceView& made, const controller::Services& services,
                     const CallContext& call, ToolResult result) {
    result.take_back = [&services, who = call.who, id = made.id] {
        services.workspaces.close(who, id);
    };
    return result;
}

Json objectSchema(Json properties, const std::vector<std::string>& required) {
    Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = required;
    schema["additionalProperties"] = false;
    return schema;
}

Json stringParam(const std::string& description, std::size_t least) {
    Json schema = {{"type", "string"}, {"description", description}};
    if (least > 0) schema["minLength"] = least;
    return schema;
}

Json integerParam(const std::string& description, std::int64_t least, std::int64_t most) {
    return {
        {"type", "integer"}, {"description", description}, {"minimum", least}, {"maximum", most}};
}

Json numberParam(const std::string& description, std::int64_t least, std::int64_t most) {
    Json schema = integerParam(description, least, most);
    schema["type"] = "number";
    return schema;
}

Json boolParam(const std::string& description) {
    return {{"type", "boolean"}, {"description", description}};
}

Json textListParam(const std::string& description, std::size_t most) {
    return {{"type", "array"},
            {"description", description},
            {"items", {{"type", "string"}, {"minLength", 1}, {"maxLength", 256}}},
            {"maxItems", most}};
}

Json textMapParam(const std::string& description) {
    return {{"type", "object"},
            {"description", description},
            {"additionalProperties", {{"type", "string"}}}};
}

Json workspaceParam() {
    return stringParam("The id that workspace_open gave, \"ws_…\".");
}

Json filesParam(const std::string& description) {
    Json file = objectSchema({{"path", stringParam("Where, relative to the workspace.")},
                              {"text", stringParam("The content as text.", 0)},
                              {"base64", stringParam("Or the content as base64.", 0)}},
                             {"path"});
    return {{"type", "array"},
            {"description", description},
            {"items", std::move(file)},
            {"maxItems", 50}};
}

Json toolHints(bool read_only, bool destructive, bool idempotent, bool open_world) {
    return {{"readOnlyHint", read_only},
            {"destructiveHint", destructive},
            {"idempotentHint", idempotent},
            {"openWorldHint", open_world}};
}

std::vector<controller::InlineFile> inlineFiles(const Arguments& arguments) {
    std::vector<controller::InlineFile> out;
    const Json* files = member(arguments.values(), "files");
    if (files == nullptr) return out;
    for (const Json& file : *files) {
        out.push_back({*stringMember(file, "path"), inlineBytes(file).value_or("")});
    }
    return out;
}

std::optional<std::string> inlineBytes(const Json& object) {
    std::optional<std::string> text = stringMember(object, "text");
    const std::optional<std::string> encoded = stringMember(object, "base64");
    if (text && encoded) {
        throw Error(ErrorCode::InvalidArgument, "give text or base64, not both");
    }
    if (!encoded) return text;
    std::string bytes;
    if (!base64Decode(*encoded, bytes)) {
        throw Error(ErrorCode::InvalidArgument, "base64 is not valid standard base64");
    }
    return bytes;
}

}  // namespace hearth::mcp
