#include <chrono>
#include <memory>
#include <utility>

#include "tests/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

/// The pause that the suite asks for between two messages.
constexpr std::chrono::milliseconds kPause{50};

using Work = Task<ToolResult> (*)(CallContext, Arguments);

Tool talking(const std::string& name, const std::string& description,
             const std::vector<std::pair<std::string, std::string>>& arguments, Work work) {
    return fixture(
        name, description, arguments,
        [work](const CallContext& call, const Arguments& given) { return work(call, given); });
}

Task<> pause(std::chrono::milliseconds length) {
    auto over = std::make_shared<Timer>(SystemClock().now() + length);
    co_await over;
}

Task<ToolResult> asked(CallContext call, Json params) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    Task<Json> asking = conversation->ask("elicitation/create", std::move(params));
    const Json answer = co_await asking;
    const Json* content = member(answer, "content");
    co_return textResult(
        "Elicitation completed: action=" + stringMember(answer, "action").value_or("") +
        ", content=" + dumpJson(content == nullptr ? Json::object() : *content));
}

/// Asks with a form and returns the user's answer as text.
Tool asking(const std::string& name, const std::string& description, const Json& params) {
    return fixture(name, description, {}, [params](const CallContext& call, const Arguments&) {
        return asked(call, params);
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

Task<ToolResult> sample(CallContext call, Arguments arguments) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    const Json content = {{"type", "text"}, {"text", arguments.textOr("prompt", "")}};
    Task<Json> asking =
        conversation->ask("sampling/createMessage",
                          {{"messages", Json::array({{{"role", "user"}, {"content", content}}})},
                           {"maxTokens", 100}});
    const Json answer = co_await asking;
    const Json* said = member(answer, "content");
    co_return textResult("LLM response: " +
                         (said == nullptr ? "" : stringMember(*said, "text").value_or("")));
}

Task<ToolResult> elicit(CallContext call, Arguments arguments) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    Task<Json> asking = conversation->ask(
        "elicitation/create",
        form(arguments.textOr("message", ""),
             {{"username", text("User's response")}, {"email", text("User's email address")}},
             {"username", "email"}));
    const Json answer = co_await asking;
    co_return textResult("User response: " + dumpJson(answer));
}

Task<ToolResult> logThrice(CallContext call, Arguments /*arguments*/) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    for (const char* line :
         {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
        conversation->log("info", line);
        Task<> rest = pause(kPause);
        co_await rest;
    }
    co_return textResult("logged");
}

Task<ToolResult> progressThrice(CallContext call, Arguments /*arguments*/) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    for (const int done : {0, 50, 100}) {
        conversation->progress(done, 100);
        Task<> rest = pause(kPause);
        co_await rest;
    }
    co_return textResult("done");
}

Task<ToolResult> reconnect(CallContext call, Arguments /*arguments*/) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    conversation->hangUp();
    Task<> rest = pause(2 * kPause);
    co_await rest;
    co_return textResult("Reconnection test completed successfully");
}

Task<ToolResult> stream(CallContext call, Arguments /*arguments*/) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    conversation->progress(1, 1);
    co_return textResult("streamed");
}

Task<ToolResult> logOnce(CallContext call, Arguments /*arguments*/) {
    Task<std::shared_ptr<Conversation>> opening = Call::talk(call.call);
    const std::shared_ptr<Conversation> conversation = co_await opening;
    conversation->log("info", "a message of test_logging_tool");
    co_return textResult("logged");
}

}  // namespace

std::vector<Tool> talkingTools(ChangeNotifier& notifier) {
    std::vector<Tool> tools;
    tools.push_back(
        talking("test_tool_with_logging", "Logs three times while it works.", {}, logThrice));
    tools.push_back(talking("test_tool_with_progress", "Tells its progress while it works.", {},
                            progressThrice));
    tools.push_back(
        talking("test_sampling", "Asks the client's model.", {{"prompt", "string"}}, sample));
    tools.push_back(talking("test_elicitation", "Asks the user.", {{"message", "string"}}, elicit));
    tools.push_back(asking("test_elicitation_sep1034_defaults",
                           "Asks the user with a form of defaults.", defaultsForm()));
    tools.push_back(asking("test_elicitation_sep1330_enums",
                           "Asks the user with a form of choices.", enumsForm()));
    tools.push_back(
        talking("test_reconnection", "Ends its connection in the middle.", {}, reconnect));
    tools.push_back(
        talking("test_streaming_elicitation", "Streams, and asks nothing.", {}, stream));
    tools.push_back(talking("test_logging_tool", "Logs, where the client wants it.", {}, logOnce));
    tools.push_back(fixture("test_missing_capability", "Needs a client that can sample.", {},
                            [](const CallContext& call, const Arguments&) {
                                if (!call.clientCan("sampling"))
                                    throw missingCapability("sampling");
                                return textResult("the client can sample");
                            }));
    tools.push_back(fixture("test_trigger_tool_change", "Says that the tools have changed.", {},
                            [&notifier](const CallContext&, const Arguments&) {
                                notifier.toolsChanged();
                                return textResult("told");
                            }));
    tools.push_back(fixture("test_trigger_prompt_change", "Says that the prompts have changed.", {},
                            [&notifier](const CallContext&, const Arguments&) {
                                notifier.promptsChanged();
                                return textResult("told");
                            }));
    return tools;
}

}  // namespace hearth::mcp::conformance
