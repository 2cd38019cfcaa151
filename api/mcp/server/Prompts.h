#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "api/mcp/protocol/CallContext.h"
#include "controller/Services.h"

namespace hearth::mcp {

struct PromptArgument {
    std::string name;
    std::string description;
    bool required = false;
    /// Values to propose; the client gets the ones that begin with the typed text. Empty: none.
    std::vector<std::string> proposals{};
};

/// The `description` and `messages` of prompts/get, or questions to the client first.
using PromptOutcome = std::variant<Json, InputRequired>;

/// One line of the table of prompts.
struct Prompt {
    std::string name;
    std::string title;
    std::string description;
    std::vector<PromptArgument> arguments;
    /// Gets an object of strings with all required arguments. May throw RpcFailure.
    std::function<PromptOutcome(const CallContext&, const Json& arguments)> make;
};

/// One endpoint's prompts. Thread-safe once made.
class Prompts {
public:
    explicit Prompts(std::vector<Prompt> prompts) : prompts_(std::move(prompts)) {}

    /// The result of prompts/list; its order is fixed.
    Json list() const;
    /// Throws RpcFailure for an unknown name and for missing arguments.
    PromptOutcome get(const CallContext& context, const Json& params) const;
    /// Returns proposals for an argument; none if the prompt or the argument does not exist,
    /// because a client asks at each key stroke and has no use for an error.
    std::vector<std::string> complete(const std::string& prompt, const std::string& argument) const;

private:
    const Prompt& find(const std::string& name) const;

    std::vector<Prompt> prompts_;
};

/// Returns Hearth's own prompt: `sandbox_guide`, which explains in English or Chinese how to work
/// with its tools and lists the caller's pools.
std::vector<Prompt> nativePrompts(const controller::Services& services);

/// A message of a prompt.
Json promptMessage(const std::string& role, Json content);
Json textContent(const std::string& text);

}  // namespace hearth::mcp
