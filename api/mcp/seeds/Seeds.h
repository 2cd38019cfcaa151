#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/tools/Toolbox.h"
#include "controller/Services.h"

namespace hearth::mcp::seeds {

/// One of the four systems that came before, as its clients know it: the tools, their arguments
/// and the keys of their results are its own; what they do is Hearth's.
struct Seed {
    std::string name;  ///< "s0" to "s3"
    Json server_info;
    std::string instructions;
    /// For MCP: where it has a form for failures, an Error is a result in that form.
    std::vector<Tool> tools;
    /// The same for plain HTTP: an Error is thrown on, so that it gets its status.
    std::vector<Tool> bare;
};

/// All four, in order. `services` outlive them.
std::vector<Seed> seeds(const controller::Services& services);

/// The JSON that a program gets as a result: an object, an array or a text.
Json plainValue(const ToolResult& result);

/// Whether there is a seed of this name.
bool isSeed(std::string_view name);
/// The port that the seed's documents name; nullopt for one that is spoken to by stdio.
std::optional<std::uint16_t> seedPort(std::string_view name);

}  // namespace hearth::mcp::seeds
