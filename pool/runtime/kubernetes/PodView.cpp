#include "pool/runtime/kubernetes/PodView.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/Ids.h"
#include "pool/runtime/kubernetes/PodManifest.h"

namespace hearth::pool::kubernetes {
namespace {

const Json kNothing;

const Json& below(const Json& object, std::initializer_list<std::string_view> path) {
    const Json* at = &object;
    for (const std::string_view name : path) {
        if (!at->is_object()) return kNothing;
        const auto found = at->find(std::string(name));
        if (found == at->end()) return kNothing;
        at = &*found;
    }
    return *at;
}

std::string text(const Json& object, std::initializer_list<std::string_view> path) {
    const Json& value = below(object, path);
    return value.is_string() ? value.get<std::string>() : "";
}

/// The status of the container with this name in a list of them.
const Json& container(const Json& pod, const char* list, const char* name) {
    for (const Json& each : below(pod, {"status", list})) {
        if (text(each, {"name"}) == name) return each;
    }
    return kNothing;
}

std::map<std::string, std::string> labelsOf(const Json& pod) {
    const Json noted =
        Json::parse(text(pod, {"metadata", "annotations", kLabelsNote}), nullptr, false);
    std::map<std::string, std::string> labels;
    if (!noted.is_object()) return labels;
    for (const auto& [key, value] : noted.items()) {
        if (value.is_string()) labels.emplace(key, value.get<std::string>());
    }
    return labels;
}

/// Failures that the kubelet retries without end; the next Pod of the pool tries the same.
constexpr std::array<std::string_view, 5> kHopeless{
    "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError",
    "CreateContainerError"};

/// A waiting container gives the reason; for a Pod without a node, a condition gives it.
std::string troubleOf(const Json& pod, bool& hopeless) {
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
        for (const Json& each : below(pod, {"status", list})) {
            std::string reason = text(each, {"state", "waiting", "reason"});
            if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") {
                continue;
            }
            hopeless = std::ranges::find(kHopeless, reason) != kHopeless.end();
            const std::string message = text(each, {"state", "waiting", "message"});
            if (!message.empty()) reason.append(": ").append(message);
            return reason;
        }
    }
    for (const Json& condition : below(pod, {"status", "conditions"})) {
        if (text(condition, {"type"}) == "PodScheduled" && text(condition, {"status"}) == "False") {
            return text(condition, {"reason"}) + ": " + text(condition, {"message"});
        }
    }
    return text(pod, {"status", "message"});
}

/// The reason alone is not enough: containerd gives it to each container in which the kernel has
/// ended any process for memory, whatever ended the container itself.
bool endedForMemory(const Json& container) {
    constexpr int kKilled = 128 + SIGKILL;
    return text(container, {"state", "terminated", "reason"}) == "OOMKilled" &&
           below(container, {"state", "terminated", "exitCode"}) == kKilled;
}

}  // namespace

std::optional<PodView> viewOf(const Json& pod) {
    const std::string name = text(pod, {"metadata", "labels", kSandboxLabel});
    constexpr std::string_view kPrefix = "sb-";
    if (!name.starts_with(kPrefix)) return std::nullopt;
    PodView view;
    view.info.id = "sb_" + name.substr(kPrefix.size());
    if (!isId(view.info.id, "sb_")) return std::nullopt;
    view.info.labels = labelsOf(pod);
    view.info.claimed = text(pod, {"metadata", "labels", kClaimedLabel}) == "true";
    view.node = text(pod, {"spec", "nodeName"});
    const std::string created = text(pod, {"metadata", "annotations", kCreatedNote});
    std::from_chars(created.data(), created.data() + created.size(), view.info.created_unix_ms);

    const std::string phase = text(pod, {"status", "phase"});
    const Json& sandbox = container(pod, "containerStatuses", kSandboxContainer);
    const bool ended = !below(sandbox, {"state", "terminated"}).is_null();
    view.info.out_of_memory = endedForMemory(sandbox);
    view.info.alive = (phase.empty() || phase == "Pending" || phase == "Running") && !ended &&
                      text(pod, {"metadata", "deletionTimestamp"}).empty();
    const std::string told = text(container(pod, "initContainerStatuses", kInitContainer),
                                  {"state", "terminated", "message"});
    const std::string address = text(pod, {"status", "podIP"});
    const auto identity = agent::secure::AgentPublicKey::parse(told);
    if (!address.empty() && identity) {
        view.agent =
            agent::PodAgent{address, kAgentPort, text(pod, {"metadata", "uid"}), *identity};
    }
    view.info.listening = view.info.alive && view.agent.has_value() &&
                          !below(sandbox, {"state", "running"}).is_null();
    if (!view.info.listening) {
        bool hopeless = false;
        view.info.trouble = troubleOf(pod, hopeless);
        if (hopeless) view.info.alive = false;
    }
    return view;
}

}  // namespace hearth::pool::kubernetes
