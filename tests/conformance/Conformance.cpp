#include "tests/conformance/Conformance.h"

#include <iterator>
#include <utility>

namespace hearth::mcp::conformance {

const std::string kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk"
    "Jggg==";
const std::string kWav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

Json form(const std::string& message, Json properties, const std::vector<std::string>& required) {
    Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = required;
    return {{"message", message}, {"requestedSchema", std::move(schema)}};
}

Tool fixture(const std::string& name, const std::string& description,
             const std::vector<std::pair<std::string, std::string>>& arguments, Handler handler) {
    Json properties = Json::object();
    std::vector<std::string> required;
    for (const auto& [argument, type] : arguments) {
        properties[argument] = {{"type", type}};
        required.push_back(argument);
    }
    return {name,
            name,
            description,
            objectSchema(std::move(properties), required),
            toolHints(true, false, true),
            std::move(handler)};
}

Catalog catalog(const controller::Services& services, ChangeNotifier& notifier) {
    Catalog native = nativeCatalog(services);
    std::vector<Tool> tools = nativeTools(services);
    for (std::vector<Tool>& group : std::vector<std::vector<Tool>>{
             contentTools(), talkingTools(notifier), inputTools(services)}) {
        tools.insert(tools.end(), std::make_move_iterator(group.begin()),
                     std::make_move_iterator(group.end()));
    }
    std::vector<Prompt> all_prompts = nativePrompts(services);
    for (Prompt& prompt : prompts()) all_prompts.push_back(std::move(prompt));
    auto sources = nativeResources(services);
    sources.insert(sources.begin(), resources());
    return {.server_info = native.server_info,
            .instructions = native.instructions,
            .tools = Toolbox(services, std::move(tools)),
            .prompts = Prompts(std::move(all_prompts)),
            .resources = Resources(std::move(sources)),
            .tools_change = true,
            .prompts_change = true};
}

}  // namespace hearth::mcp::conformance
