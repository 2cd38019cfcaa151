#include "api/mcp/server/Prompts.h"

namespace hearth::mcp {

Json Prompts::list() const {
    Json out = Json::array();
    for (const Prompt& prompt : prompts_) {
        Json arguments = Json::array();
        for (const PromptArgument& argument : prompt.arguments) {
            arguments.push_back({{"name", argument.name},
                                 {"description", argument.description},
                                 {"required", argument.required}});
        }
        out.push_back({{"name", prompt.name},
                       {"title", prompt.title},
                       {"description", prompt.description},
                       {"arguments", std::move(arguments)}});
    }
    return {{"prompts", std::move(out)}};
}

const Prompt& Prompts::find(const std::string& name) const {
    std::string names;
    for (const Prompt& prompt : prompts_) {
        if (prompt.name == name) return prompt;
        names += (names.empty() ? "" : ", ") + prompt.name;
    }
    throw RpcFailure(
        {rpc::kInvalidParams, "Unknown prompt: " + name + ". The prompts are " + names, {}});
}

PromptOutcome Prompts::get(const CallContext& context, const Json& params) const {
    const Prompt& prompt = find(stringMember(params, "name").value_or(""));
    const Json* given = member(params, "arguments");
    if (given != nullptr && !given->is_object()) {
        throw RpcFailure({rpc::kInvalidParams, "arguments must be an object", {}});
    }
    const Json all = given == nullptr ? Json::object() : *given;
    Json arguments = Json::object();
    for (const auto& [name, value] : all.items()) {
        if (value.is_null()) continue;  // left out
        if (!value.is_string()) {
            throw RpcFailure({rpc::kInvalidParams, "Argument " + name + " must be a string", {}});
        }
        arguments[name] = value;
    }
    for (const PromptArgument& argument : prompt.arguments) {
        if (argument.required && member(arguments, argument.name) == nullptr) {
            throw RpcFailure(
                {rpc::kInvalidParams, "Argument " + argument.name + " is missing", {}});
        }
    }
    return prompt.make(context, arguments);
}

std::vector<std::string> Prompts::complete(const std::string& prompt,
                                           const std::string& argument) const {
    for (const Prompt& one : prompts_) {
        if (one.name != prompt) continue;
        for (const PromptArgument& known : one.arguments) {
            if (known.name == argument) return known.proposals;
        }
    }
    return {};
}

Json promptMessage(const std::string& role, Json content) {
    return {{"role", role}, {"content", std::move(content)}};
}

Json textContent(const std::string& text) {
    return {{"type", "text"}, {"text", text}};
}

}  // namespace hearth::mcp
