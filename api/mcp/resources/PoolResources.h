#pragma once

#include "api/mcp/resources/Resources.h"

namespace hearth::mcp {

/// `pool://{name}`: a pool's specification and state.
class PoolResources final : public ResourceSource {
public:
    explicit PoolResources(const controller::Services& services) : services_(services) {}

    void list(const CallContext& context, Json& resources) const override;
    void templates(Json& templates) const override;
    std::optional<Json> read(const CallContext& context, const std::string& uri) const override;
    bool watchable(const CallContext& context, const std::string& uri) const override;
    std::optional<std::vector<std::string>> complete(const CallContext& context,
                                                     const std::string& uri_template,
                                                     const Typed& typed) const override;

private:
    const controller::Services& services_;
};

}  // namespace hearth::mcp
