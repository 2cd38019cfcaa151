#include "api/serve/Capabilities.h"

#include "api/mcp/protocol/Era.h"
#include "api/rest/model/Answers.h"
#include "base/Version.h"

namespace hearth::program {
namespace {

/// Returns the languages that an agent of a pool with this image reported; empty if there is none.
std::vector<std::string> languagesOf(const std::string& image, const controller::SpecStore& specs,
                                     const pool::WarmPool& warm) {
    for (const controller::PoolPtr& pool : specs.all()) {
        if (pool->spec.image != image) continue;
        if (auto known = warm.languages(pool->name)) return *std::move(known);
    }
    return {};
}

Json imagesOf(const pool::RuntimeFacts& facts, const controller::SpecStore& specs,
              const pool::WarmPool& warm) {
    Json images = Json::array();
    for (const std::string& image : facts.images) {
        const auto note = facts.image_notes.find(image);
        if (note == facts.image_notes.end()) {
            images.push_back({{"name", image}, {"languages", languagesOf(image, specs, warm)}});
            continue;
        }
        images.push_back({{"name", image},
                          {"digest", note->second.digest},
                          {"reference", note->second.reference},
                          {"languages", note->second.languages}});
    }
    return images;
}

/// Returns MCP's revisions, the newest first.
Json revisions() {
    Json all = mcp::kModernVersions;
    for (const std::string_view version : mcp::kLegacyVersions) all.push_back(version);
    return all;
}

}  // namespace

Json capabilities(const cli::ServeConfig& config, const pool::RuntimeFacts& facts,
                  const controller::SpecStore& specs, const pool::WarmPool& warm,
                  const egress::EgressGateway& gateway, const controller::Gpus& gpus) {
    Json mirrors = Json::array();
    for (const egress::IndexKind kind : gateway.mirrored()) {
        mirrors.push_back(egress::kIndexKinds.of(kind));
    }
    return {
        {"version", kHearthVersion},
        {"runtime", facts.name},
        {"runtimeVersion", facts.version},
        {"isolation",
         {{"userNamespaces", facts.user_namespaces},
          {"seccomp", facts.seccomp},
          {"cgroup", facts.cgroup},
          {"network", "None"},  // its own network; allowed traffic goes through the gateway
          {"knownHoles", facts.holes}}},
        {"images", imagesOf(facts, specs, warm)},
        {"onDemand",
         {{"allow", *config.on_demand_allow}, {"maxSandboxes", *config.on_demand_max_sandboxes}}},
        {"networks", egress::kNetworkModes.all()},
        {"mirrors", std::move(mirrors)},
        {"gpus", rest::jsonOf(gpus.products())},
        {"protocols", {{"rest", "v1"}, {"mcp", revisions()}}}};
}

}  // namespace hearth::program
