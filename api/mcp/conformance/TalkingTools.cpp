#include <chrono>
#include <thread>

#include "api/mcp/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

/// The pause that the suite asks for between two messages.
constexpr std::chrono::milliseconds kPause{50};

using Talk = std::function<ToolResult(Conversation&, const Arguments&)>;

Tool talking(const std::string& name, const std::string& description,
             const std::vector<std::pair<std::string, std::string>>& arguments, Talk work) {
    return fixture(name, description, arguments,
                   [work = std::move(work)](const CallContext&, const Arguments& given) {
                       return LiveCall{[work, given](Conversation& conversation) {
                           return work(conversation, given);
                       }};
                   });
}

/// Asks with a form and returns the user's answer as text.
Tool asking(const std::string& name, const std::string& description, const Json& params) {
    return talking(name, description, {}, [params](Conversation& conversation, const Arguments&) {
        const Json answer = conversation.ask("elicitation/create", params);
        const Json* content = member(answer, "content");
        return textResult(
            "Elicitation completed: action=" + stringMember(answer, "action").value_or("") +
            ", content=" + dumpJson(content == nullptr ? Json::object() : *content));
    });
}

Json text(const std::string& description) {
    return {{"type", "string"}, {"description", description}};
}

Json defaultsForm() {
    return form(
        "Please review and update the form fields with defaults",
        {{"name", {{"type", "string"}, {"default", "John Doe"}}},
         {"age", {{"type", "integer"}, {"default", 30}}},
         {"score", {{"type", "number"}, {"default", 95.5}}},
         {"status",
          {{"type", "string"}, {"enum", {"active", "inactive", "pending"}}, {"default", "active"}}},
         {"verified", {{"type", "boolean"}, {"default", true}}}},
        {});
}

Json titled(const std::string& value, const std::string& title) {
    return {{"const", value}, {"title", title}};
}

Json enumsForm() {
    const Json plain = {"option1", "option2", "option3"};
    const Json with_titles =
        Json::array({titled("value1", "First Option"), titled("value2", "Second Option"),
                     titled("value3", "Third Option")});
    return form(
        "Please select options from the enum fields",
        {{"untitledSingle", {{"type", "string"}, {"enum", plain}}},
         {"titledSingle", {{"type", "string"}, {"oneOf", with_titles}}},
         {"legacyEnum",
          {{"type", "string"},
           {"enum", {"opt1", "opt2", "opt3"}},
           {"enumNames", {"Option One", "Option Two", "Option Three"}}}},
         {"untitledMulti", {{"type", "array"}, {"items", {{"type", "string"}, {"enum", plain}}}}},
         {"titledMulti", {{"type", "array"}, {"items", {{"anyOf", with_titles}}}}}},
        {});
}

ToolResult sample(Conversation& conversation, const Arguments& arguments) {
    const Json content = {{"type", "text"}, {"text", arguments.textOr("prompt", "")}};
    const Json answer =
        conversation.ask("sampling/createMessage",
                         {{"messages", Json::array({{{"role", "user"}, {"content", content}}})},
                          {"maxTokens", 100}});
    const Json* said = member(answer, "content");
    return textResult("LLM response: " +
                      (said == nullptr ? "" : stringMember(*said, "text").value_or("")));
}

ToolResult elicit(Conversation& conversation, const Arguments& arguments) {
    const Json answer = conversation.ask(
        "elicitation/create",
        form(arguments.textOr("message", ""),
             {{"username", text("User's response")}, {"email", text("User's email address")}},
             {"username", "email"}));
    return textResult("User response: " + dumpJson(answer));
}

}  // namespace

std::vector<Tool> talkingTools(const Announce& announce) {
    std::vector<Tool> tools;
    tools.push_back(talking("test_tool_with_logging", "Logs three times while it works.", {},
                            [](Conversation& conversation, const Arguments&) {
                                for (const char* line :
                                     {"Tool execution started", "Tool processing data",
                                      "Tool execution completed"}) {
                                    conversation.log("info", line);
                                    std::this_thread::sleep_for(kPause);
                                }
                                return textResult("logged");
                            }));
    tools.push_back(talking("test_tool_with_progress", "Tells its progress while it works.", {},
                            [](Conversation& conversation, const Arguments&) {
                                for (const int done : {0, 50, 100}) {
                                    conversation.progress(done, 100);
                                    std::this_thread::sleep_for(kPause);
                                }
                                return textResult("done");
                            }));
    tools.push_back(
        talking("test_sampling", "Asks the client's model.", {{"prompt", "string"}}, sample));
    tools.push_back(talking("test_elicitation", "Asks the user.", {{"message", "string"}}, elicit));
    tools.push_back(asking("test_elicitation_sep1034_defaults",
                           "Asks the user with a form of defaults.", defaultsForm()));
    tools.push_back(asking("test_elicitation_sep1330_enums",
                           "Asks the user with a form of choices.", enumsForm()));
    tools.push_back(talking("test_reconnection", "Ends its connection in the middle.", {},
                            [](Conversation& conversation, const Arguments&) {
                                conversation.hangUp();
                                std::this_thread::sleep_for(2 * kPause);
                                return textResult("Reconnection test completed successfully");
                            }));
    tools.push_back(talking("test_streaming_elicitation", "Streams, and asks nothing.", {},
                            [](Conversation& conversation, const Arguments&) {
                                conversation.progress(1, 1);
                                return textResult("streamed");
                            }));
    tools.push_back(talking("test_logging_tool", "Logs, where the client wants it.", {},
                            [](Conversation& conversation, const Arguments&) {
                                conversation.log("info", "a message of test_logging_tool");
                                return textResult("logged");
                            }));
    tools.push_back(fixture("test_missing_capability", "Needs a client that can sample.", {},
                            [](const CallContext& call, const Arguments&) {
                                if (!call.clientCan("sampling"))
                                    throw missingCapability("sampling");
                                return textResult("the client can sample");
                            }));
    tools.push_back(fixture("test_trigger_tool_change", "Says that the tools have changed.", {},
                            [tell = announce.tools](const CallContext&, const Arguments&) {
                                tell();
                                return textResult("told");
                            }));
    tools.push_back(fixture("test_trigger_prompt_change", "Says that the prompts have changed.", {},
                            [tell = announce.prompts](const CallContext&, const Arguments&) {
                                tell();
                                return textResult("told");
                            }));
    return tools;
}

}  // namespace hearth::mcp::conformance
