#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/mcp/protocol/CallContext.h"
#include "api/mcp/tools/Arguments.h"
#include "api/mcp/tools/Content.h"
#include "base/Clock.h"
#include "base/task/Task.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// A call's result, questions to its client, or work that waits: an execution, or first a sandbox
/// for it. Such work owns what it needs; destroying it gives back what it waits with.
using ToolOutcome = std::variant<ToolResult, InputRequired, Task<ToolResult>>;

/// One line of the table of tools, with everything that clients and validation need.
struct Tool {
    std::string name;
    std::string title;
    std::string
        description;  ///< "{pools}" and "{default}" are filled in from the pools' real limits
    Json schema;      ///< flat, without $ref
    Json annotations;
    /// Gets arguments that fit the schema. An Error becomes a result that the model reads, an
    /// RpcFailure an error of the protocol.
    std::function<ToolOutcome(const CallContext&, const Arguments&)> handler;
};

/// One endpoint's tools and their use, for every transport. Thread-safe once made.
class Toolbox {
public:
    /// `services` must outlive the toolbox. The order of `tools` is the order of the list.
    Toolbox(const controller::Services& services, std::vector<Tool> tools);

    /// Returns the result of tools/list; its order is fixed.
    Json list(const controller::Principal& who) const;
    const Tool* find(const std::string& name) const;
    std::string names() const;
    /// Checks arguments and runs the tool. Never throws Error: it becomes a result with isError.
    /// Throws RpcFailure.
    ToolOutcome call(const Tool& tool, const CallContext& context, const Json& arguments) const;

private:
    const controller::Services& services_;
    std::vector<Tool> tools_;
};

/// Hearth's own ten tools.
std::vector<Tool> nativeTools(const controller::Services& services);

// The groups of these tools, one file each.
std::vector<Tool> workspaceTools(const controller::Services& services);
std::vector<Tool> runTools(const controller::Services& services);
std::vector<Tool> packageTools(const controller::Services& services);
std::vector<Tool> fileTools(const controller::Services& services);

/// Returns a pool's real limits: "python: languages python, sh; 1 cpu, 512Mi memory, …".
std::string poolFacts(const controller::PoolView& pool, const std::vector<std::string>& languages);
/// Returns an image's languages as the capabilities document names them; empty if it does not.
std::vector<std::string> imageLanguages(const Json& capabilities, const std::string& image);

/// The parameter `gpus` of the tools that claim, and the GPUs it asks for; none without it.
Json gpusParam();
std::optional<controller::GpuWish> gpuWish(const Arguments& arguments);
/// Returns a claim for a call, which waits as long as the call may.
controller::WorkspaceRequest claimFor(const CallContext& call);
/// Returns `result`, which names a new workspace. It is closed if the client never gets the result.
ToolResult tellingOf(const controller::WorkspaceView& made, const controller::Services& services,
                     const CallContext& call, ToolResult result);

/// Schema pieces.
Json objectSchema(Json properties, const std::vector<std::string>& required = {});
Json stringParam(const std::string& description, std::size_t least = 1);
Json integerParam(const std::string& description, std::int64_t least, std::int64_t most);
Json numberParam(const std::string& description, std::int64_t least, std::int64_t most);
Json boolParam(const std::string& description);
Json textMapParam(const std::string& description);
Json textListParam(const std::string& description, std::size_t most);
Json workspaceParam();
Json filesParam(const std::string& description);
/// `open_world`: the tool may reach things outside the sandbox.
Json toolHints(bool read_only, bool destructive, bool idempotent, bool open_world = false);

/// Reads the `files` argument; Error(InvalidArgument) for bad base64 or both of text and base64.
std::vector<controller::InlineFile> inlineFiles(const Arguments& arguments);
/// Returns `text` or `base64` of an object as bytes; nullopt without either.
std::optional<std::string> inlineBytes(const Json& object);

}  // namespace hearth::mcp
