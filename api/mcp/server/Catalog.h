#pragma once

#include <optional>
#include <string>

#include "api/mcp/resources/Resources.h"
#include "api/mcp/server/Prompts.h"
#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {

/// The tools, prompts and resources that one endpoint offers, in every era and transport.
struct Catalog {
    Json server_info;  ///< "name", "version", "title"
    std::string instructions;
    Toolbox tools;
    std::optional<Prompts> prompts{};      ///< none: the endpoint has no such capability
    std::optional<Resources> resources{};  ///< likewise
    // True if streams report changes of the list. Changes of the resource list are always reported.
    bool tools_change = false;
    bool prompts_change = false;
};

/// Hearth's own ten tools, its prompt and its resources.
Catalog nativeCatalog(const controller::Services& services);

}  // namespace hearth::mcp
