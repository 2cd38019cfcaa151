#include "controller/gpus/GpuChoice.h"

#include <algorithm>
#include <map>

namespace hearth::controller {
namespace {

constexpr std::string_view kNvidia = "nvidia.com/";

std::string kindName(const pool::GpuDevice& device) {
    return device.profile.empty() ? device.product : "MIG " + device.profile;
}

/// Checks for a device of the kind that the pool's sharing needs.
bool isOfKind(const pool::GpuDevice& device, GpuSharing sharing) {
    if (device.split) return false;
    return (sharing == GpuSharing::Mig) == !device.parent.empty();
}

const char* kindText(GpuSharing sharing) {
    return sharing == GpuSharing::Mig ? "MIG instances" : "whole GPUs";
}

}  // namespace

std::optional<std::size_t> rankOf(const pool::GpuDevice& device, const GpuSpec& spec) {
    if (!isOfKind(device, spec.sharing)) return std::nullopt;
    if (spec.products.empty()) return 0;
    for (std::size_t i = 0; i < spec.products.size(); ++i) {
        if (hasWords(device.product, spec.products[i]) || device.profile == spec.products[i]) {
            return i;
        }
    }
    return std::nullopt;
}

std::string inventoryText(const std::vector<pool::GpuDevice>& devices) {
    std::map<std::string, std::size_t> counts;
    for (const pool::GpuDevice& device : devices) {
        if (!device.split) ++counts[kindName(device)];
    }
    std::string text;
    for (const auto& [name, count] : counts) {
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + name;
    }
    return text.empty() ? "none that pools can use" : text;
}

std::string clusterResourceOf(const GpuSpec& spec) {
    std::string resource(kNvidia);
    if (spec.sharing == GpuSharing::Exclusive) return resource + "gpu";
    if (spec.sharing == GpuSharing::Shared) return resource + "gpu.shared";
    return resource + "mig-" + (spec.products.empty() ? "" : spec.products.front());
}

bool isClusterResource(std::string_view text) {
    return text.starts_with(kNvidia);
}

std::optional<FieldError> refusalInCluster(const GpuSpec& spec) {
    const bool mig = spec.sharing == GpuSharing::Mig;
    if (spec.count == 0 || spec.products.size() == (mig ? 1 : 0)) return std::nullopt;
    return FieldError{"/spec/template/gpu/product",
                      mig ? "must be one MIG profile in a cluster, such as 1g.10gb"
                          : "must be empty in a cluster: choose nodes by their label "
                            "nvidia.com/gpu.product in podTemplate.spec.nodeSelector"};
}

std::optional<FieldError> refusalOf(const GpuSpec& spec,
                                    const std::vector<pool::GpuDevice>& devices,
                                    const std::string& absence) {
    if (spec.count == 0) return std::nullopt;
    const std::string at = "/spec/template/gpu";
    if (devices.empty()) {
        return FieldError{at + "/count",
                          "must be 0: " + (absence.empty() ? "this machine has no GPU" : absence)};
    }
    const std::string there = "; this machine has " + inventoryText(devices);
    const auto of_kind = std::count_if(
        devices.begin(), devices.end(),
        [&](const pool::GpuDevice& device) { return isOfKind(device, spec.sharing); });
    if (of_kind == 0) {
        return FieldError{at + "/sharing", std::string(kGpuSharings.of(spec.sharing)) + " needs " +
                                               kindText(spec.sharing) + there};
    }
    const auto fit = static_cast<std::size_t>(std::count_if(
        devices.begin(), devices.end(),
        [&](const pool::GpuDevice& device) { return rankOf(device, spec).has_value(); }));
    if (fit == 0) return FieldError{at + "/product", "no device matches" + there};
    if (fit < spec.count) {
        return FieldError{at + "/count", "is " + std::to_string(spec.count) + ", and only " +
                                             std::to_string(fit) + " fit" + there};
    }
    return std::nullopt;
}

}  // namespace hearth::controller
