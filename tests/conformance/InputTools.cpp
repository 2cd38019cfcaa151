#include "base/Ids.h"
#include "tests/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

Json elicitation(const std::string& message, const std::string& field, const std::string& type) {
    return {{"method", "elicitation/create"},
            {"params", form(message, {{field, {{"type", type}}}}, {field})}};
}

Json sampling(const std::string& question, int most) {
    return {
        {"method", "sampling/createMessage"},
        {"params",
         {{"messages",
           Json::array({{{"role", "user"}, {"content", {{"type", "text"}, {"text", question}}}}})},
          {"maxTokens", most}}}};
}

Json rootsList() {
    return {{"method", "roots/list"}, {"params", Json::object()}};
}

Json nameForm() {
    return elicitation("What is your name?", "name", "string");
}

/// Returns the client's answer of that key, an object; null if it is missing or not an object.
Json answered(const CallContext& call, const std::string& key) {
    const Json* answer = member(call.input_responses, key);
    return answer != nullptr && answer->is_object() ? *answer : Json();
}

/// Returns a field of a form that the user has accepted.
std::optional<std::string> accepted(const CallContext& call, const std::string& key,
                                    const std::string& field) {
    const Json answer = answered(call, key);
    const Json* content = member(answer, "content");
    if (stringMember(answer, "action") != "accept" || content == nullptr) return std::nullopt;
    return stringMember(*content, field);
}

void require(const CallContext& call, const std::string& capability) {
    if (!call.clientCan(capability)) throw missingCapability(capability);
}

/// State that passed through the client: its content and its owner, signed.
class SignedState {
public:
    SignedState(const controller::Services& services, std::string tool)
        : key_(services.secret_key), tool_(std::move(tool)) {}

    std::string make(const CallContext& call, const std::string& step) const {
        return step + "." + sign(call, step);
    }
    /// Returns the step of the client's state; empty if the client sent none. Throws RpcFailure if
    /// the state was changed, or belongs to another tool or tenant.
    std::string step(const CallContext& call) const {
        if (!call.request_state) return {};
        const std::size_t dot = call.request_state->find('.');
        const std::string step = call.request_state->substr(0, dot);
        if (dot == std::string::npos ||
            !constantTimeEqual(call.request_state->substr(dot + 1), sign(call, step))) {
            throw RpcFailure({rpc::kInvalidParams, "requestState is not as it was given", {}});
        }
        return step;
    }

private:
    std::string sign(const CallContext& call, const std::string& step) const {
        return derivedId("", key_, {"mcp input", tool_, call.who.tenant, step});
    }

    const std::string key_;
    const std::string tool_;
};

Tool input(const std::string& name, Handler handler) {
    return fixture(name, "Asks its client before it answers.", {}, std::move(handler));
}

ToolOutcome greet(const CallContext& call, const Arguments&) {
    require(call, "elicitation");
    if (const auto name = accepted(call, "user_name", "name")) {
        return textResult("Hello, " + *name + "!");
    }
    return InputRequired{{{"user_name", nameForm()}}};
}

ToolOutcome askModel(const CallContext& call, const Arguments&) {
    require(call, "sampling");
    const Json answer = answered(call, "capital_question");
    if (!answer.is_null()) return textResult("The model says: " + dumpJson(answer));
    return InputRequired{{{"capital_question", sampling("What is the capital of France?", 100)}}};
}

ToolOutcome askRoots(const CallContext& call, const Arguments&) {
    require(call, "roots");
    const Json answer = answered(call, "client_roots");
    if (!answer.is_null()) return textResult("The roots are: " + dumpJson(answer));
    return InputRequired{{{"client_roots", rootsList()}}};
}

Handler confirming(const SignedState& state, const std::string& done) {
    return [state, done](const CallContext& call, const Arguments&) -> ToolOutcome {
        require(call, "elicitation");
        if (state.step(call) == "asked" && !answered(call, "confirm").is_null()) {
            return textResult(done);
        }
        return InputRequired{{{"confirm", elicitation("Please confirm", "ok", "boolean")}},
                             state.make(call, "asked")};
    };
}

Handler askAll(const SignedState& state) {
    return [state](const CallContext& call, const Arguments&) -> ToolOutcome {
        for (const char* one : {"elicitation", "sampling", "roots"}) require(call, one);
        const auto name = accepted(call, "user_name", "name");
        const Json greeting = answered(call, "greeting");
        const Json roots = answered(call, "client_roots");
        if (state.step(call) == "asked" && name && !greeting.is_null() && !roots.is_null()) {
            return textResult(*name + ": " + dumpJson(greeting) + ", " + dumpJson(roots));
        }
        return InputRequired{{{"user_name", nameForm()},
                              {"greeting", sampling("Generate a greeting", 50)},
                              {"client_roots", rootsList()}},
                             state.make(call, "asked")};
    };
}

Handler stepByStep(const SignedState& state) {
    return [state](const CallContext& call, const Arguments&) -> ToolOutcome {
        require(call, "elicitation");
        const std::string step = state.step(call);
        if (step == "2" && accepted(call, "step2", "color")) {
            return textResult("Both steps are done.");
        }
        if (step == "2" || (step == "1" && accepted(call, "step1", "name"))) {
            return InputRequired{
                {{"step2", elicitation("Step 2: What is your favorite color?", "color", "string")}},
                state.make(call, "2")};
        }
        return InputRequired{
            {{"step1", elicitation("Step 1: What is your name?", "name", "string")}},
            state.make(call, "1")};
    };
}

/// Asks only questions that the client can answer.
ToolOutcome askWhatItCan(const CallContext& call, const Arguments&) {
    InputRequired wanted;
    if (call.clientCan("elicitation")) wanted.requests["user_name"] = nameForm();
    if (call.clientCan("sampling")) {
        wanted.requests["greeting"] = sampling("Generate a greeting", 50);
    }
    if (call.clientCan("roots")) wanted.requests["client_roots"] = rootsList();
    if (wanted.requests.empty()) throw missingCapability("elicitation");
    for (const auto& [key, request] : wanted.requests.items()) {
        if (answered(call, key).is_null()) return wanted;
    }
    return textResult("Everything was answered.");
}

}  // namespace

std::vector<Tool> inputTools(const controller::Services& services) {
    const std::string name = "test_input_required_result_";
    const auto state = [&](const char* tool) { return SignedState(services, name + tool); };
    return {input(name + "elicitation", greet),
            input(name + "sampling", askModel),
            input(name + "list_roots", askRoots),
            input(name + "request_state", confirming(state("request_state"), "state-ok")),
            input(name + "tampered_state", confirming(state("tampered_state"), "confirmed")),
            input(name + "multiple_inputs", askAll(state("multiple_inputs"))),
            input(name + "multi_round", stepByStep(state("multi_round"))),
            input(name + "capabilities", askWhatItCan)};
}

}  // namespace hearth::mcp::conformance
