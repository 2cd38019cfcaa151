#include "tests/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

Json messages(std::vector<Json> contents) {
    Json out = Json::array();
    for (Json& content : contents) out.push_back(promptMessage("user", std::move(content)));
    return {{"messages", std::move(out)}};
}

Prompt prompt(const std::string& name, const std::string& description,
              std::vector<PromptArgument> arguments,
              std::function<PromptOutcome(const CallContext&, const Json&)> make) {
    return {name, name, description, std::move(arguments), std::move(make)};
}

PromptOutcome withContext(const CallContext& call, const Json&) {
    const Json* answer = member(call.input_responses, "user_context");
    const Json* content = answer == nullptr ? nullptr : member(*answer, "content");
    const auto context = content == nullptr ? std::nullopt : stringMember(*content, "context");
    if (context) return messages({textContent("Use this context: " + *context)});
    if (!call.clientCan("elicitation")) throw missingCapability("elicitation");
    return InputRequired{{{"user_context",
                           {{"method", "elicitation/create"},
                            {"params", form("What context should the prompt use?",
                                            {{"context", {{"type", "string"}}}}, {"context"})}}}}};
}

}  // namespace

std::vector<Prompt> prompts() {
    std::vector<Prompt> out;
    out.push_back(prompt("test_simple_prompt", "A text.", {},
                         [](const CallContext&, const Json&) -> PromptOutcome {
                             return messages({textContent("This is a simple prompt for testing.")});
                         }));
    out.push_back(prompt(
        "test_prompt_with_arguments", "A text with its arguments in it.",
        {{"arg1", "First test argument", true}, {"arg2", "Second one", true}},
        [](const CallContext&, const Json& arguments) -> PromptOutcome {
            return messages({textContent(
                "Prompt with arguments: arg1='" + stringMember(arguments, "arg1").value_or("") +
                "', arg2='" + stringMember(arguments, "arg2").value_or("") + "'")});
        }));
    out.push_back(prompt("test_prompt_with_embedded_resource", "A resource and a text.",
                         {{"resourceUri", "URI of the resource to embed", true}},
                         [](const CallContext&, const Json& arguments) -> PromptOutcome {
                             return messages(
                                 {{{"type", "resource"},
                                   {"resource",
                                    {{"uri", stringMember(arguments, "resourceUri").value_or("")},
                                     {"mimeType", "text/plain"},
                                     {"text", "Embedded resource content for testing."}}}},
                                  textContent("Please process the embedded resource above.")});
                         }));
    out.push_back(prompt("test_prompt_with_image", "An image and a text.", {},
                         [](const CallContext&, const Json&) -> PromptOutcome {
                             return messages(
                                 {{{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}},
                                  textContent("Please analyze the image above.")});
                         }));
    out.push_back(
        prompt("test_input_required_result_prompt", "Asks its client first.", {}, withContext));
    return out;
}

}  // namespace hearth::mcp::conformance
