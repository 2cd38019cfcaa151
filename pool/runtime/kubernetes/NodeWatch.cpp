#include "pool/runtime/kubernetes/NodeWatch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace hearth::pool::kubernetes {

std::string unfitness(const Json& node) {
    const Json::json_pointer cordoned("/spec/unschedulable");
    const Json::json_pointer conditions("/status/conditions");
    if (node.contains(cordoned) && node[cordoned] == true) return "is cordoned";
    if (node.contains(conditions)) {
        for (const Json& each : node[conditions]) {
            if (each.value("type", "") == "Ready" && each.value("status", "") == "True") return "";
        }
    }
    return "is not ready";
}

NodeWatch::NodeWatch(KubernetesClient& client, const Clock& clock, metrics::Log& log,
                     std::function<void(const std::string&)> changed)
    : log_(log),
      changed_(std::move(changed)),
      reflector_(client, {.plural = "nodes"}, cache_, clock, following()) {
    subscription_ = cache_.subscribe([this](const ObjectChange& change) { tell(change); });
    follower_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
}

NodeWatch::~NodeWatch() {
    follower_.request_stop();
    reflector_.stop();
    if (follower_.joinable()) follower_.join();
    subscription_.reset();
}

ReflectorOptions NodeWatch::following() {
    ReflectorOptions options;
    options.on_condition = [this](const ReflectorCondition& condition) {
        if (condition.state == ReflectorCondition::State::Forbidden) {
            log_.warn("kubernetes.nodes_unknown",
                      {{"why", condition.message},
                       {"hint",
                        "let the server list and watch nodes: it then leaves those that "
                        "are cordoned"}});
        }
    };
    return options;
}

/// Nodes report often; only a change of fitness is reported.
void NodeWatch::tell(const ObjectChange& change) {
    const std::string before = change.before ? unfitness(*change.before) : "";
    const std::string now = change.now ? unfitness(*change.now) : "has gone";
    if (before == now) return;
    const std::string name = metadataText(change.now ? *change.now : *change.before, "name");
    log_.info("kubernetes.node", {{"node", name}, {"state", now.empty() ? "fit" : now}});
    // The first fit node makes the others unfit again: see unfit().
    std::vector<std::string> names{name};
    for (const KubeObject& node : cache_.list()) {
        if (metadataText(*node, "name") != name) names.push_back(metadataText(*node, "name"));
    }
    for (const std::string& each : names) changed_(each);
}

std::string NodeWatch::unfit(const std::string& node) const {
    if (node.empty() || !reflector_.ready()) return "";
    const KubeObject seen = cache_.get(node);
    const std::string why = seen ? unfitness(*seen) : "has gone";
    if (why.empty()) return "";
    const std::vector<KubeObject> all = cache_.list();
    const bool other = std::any_of(all.begin(), all.end(),
                                   [](const KubeObject& each) { return unfitness(*each).empty(); });
    return other ? "its node " + node + " " + why : "";
}

}  // namespace hearth::pool::kubernetes
