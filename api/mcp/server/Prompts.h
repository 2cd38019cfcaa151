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
    /// Values to propose; those that begin with the typed text are returned. Empty: none.
    std::vector<std::string> proposals{};
};

/// `description` and `messages` of prompts/get, or questions first.
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
    /// Proposals for an argument; none for a prompt or an argument that there is not: a client asks
    /// at each key stroke, and has nothing to do with an error.
    std::vector<std::string> complete(const std::string& prompt, const std::string& argument) const;

private:
    const Prompt& find(const std::string& name) const;

    std::vector<Prompt> prompts_;
};

/// Hearth's own: `sandbox_guide`, how to work with its tools, in English and Chinese, with the
/// pools that the caller has.
std::vector<Prompt> nativePrompts(const controller::Services& services);

/// A message of a prompt.
Json promptMessage(const std::string& role, Json content);
Json textContent(const std::string& text);

}  // namespace hearth::mcp
