#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/tools/Toolbox.h"
#include "controller/Services.h"

namespace hearth::mcp::seeds {

/// One of the four earlier systems, as its clients know it: the tools, their arguments and the keys
/// of their results are the seed's own; their work is done by Hearth.
struct Seed {
    std::string name;  ///< "s0" to "s3"
    Json server_info;
    std::string instructions;
    /// For MCP: if the seed has a form for failures, an Error becomes a result in that form.
    std::vector<Tool> tools;
    /// The same for plain HTTP: an Error is passed on, so that it gets its HTTP status.
    std::vector<Tool> bare;
};

/// Returns all four, in order. `services` must outlive them.
std::vector<Seed> seeds(const controller::Services& services);

/// Returns the JSON that a program gets as a result: an object, an array or a text.
Json plainValue(const ToolResult& result);

/// True if there is a seed of this name.
bool isSeed(std::string_view name);
/// Returns the port that the seed's documents name; nullopt for a seed that uses stdio.
std::optional<std::uint16_t> seedPort(std::string_view name);

}  // namespace hearth::mcp::seeds
