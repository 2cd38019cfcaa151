#include "pool/gpu/GpuMessages.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Json.h"

namespace hearth::pool::gpu {
namespace {

constexpr std::size_t kMostDevices = 1024;

[[noreturn]] void refuseLine(const FieldError& error) {
    throw Error(ErrorCode::InvalidArgument,
                "an answer of hearth-gpu is wrong at " + error.pointer + ": " + error.reason);
}

const Fields::Wrong kRefuse = refuseLine;

GpuDevice readDevice(const Json& json, const std::string& pointer) {
    Fields fields(json, pointer, kRefuse);
    GpuDevice device;
    device.uuid = fields.text("uuid").value_or("");
    device.product = fields.text("product").value_or("");
    device.memory_bytes = fields.number("memoryBytes", 0, UINT64_MAX).value_or(0);
    device.parent = fields.text("parent").value_or("");
    device.profile = fields.text("profile").value_or("");
    device.split = fields.flag("split").value_or(false);
    device.fault = fields.text("fault").value_or("");
    fields.finish();
    return device;
}

}  // namespace

std::string encodeLook(const GpuLook& look) {
    Json devices = Json::array();
    for (const GpuDevice& device : look.devices) {
        devices.push_back({{"uuid", device.uuid},
                           {"product", device.product},
                           {"memoryBytes", device.memory_bytes},
                           {"parent", device.parent},
                           {"profile", device.profile},
                           {"split", device.split},
                           {"fault", device.fault}});
    }
    Json lasting = Json::array();
    for (const auto& [uuid, fault] : look.lasting) {
        lasting.push_back({{"uuid", uuid}, {"fault", fault}});
    }
    return dumpJson({{"absence", look.absence}, {"devices", devices}, {"lasting", lasting}});
}

std::string encodeScrub(const GpuScrub& scrub) {
    return dumpJson({{"clean", scrub.clean}, {"why", scrub.why}, {"bytes", scrub.bytes}});
}

GpuLook decodeLook(std::string_view line) {
    const Json answer = parseJson(line);
    Fields fields(answer, "", kRefuse);
    GpuLook look;
    look.absence = fields.text("absence").value_or("");
    fields.items("devices", kMostDevices, [&](const Json& one, const std::string& pointer) {
        look.devices.push_back(readDevice(one, pointer));
    });
    fields.items("lasting", kMostDevices, [&](const Json& one, const std::string& pointer) {
        Fields fault(one, pointer, kRefuse);
        look.lasting[fault.text("uuid").value_or("")] = fault.text("fault").value_or("");
        fault.finish();
    });
    fields.finish();
    return look;
}

GpuScrub decodeScrub(std::string_view line) {
    const Json answer = parseJson(line);
    Fields fields(answer, "", kRefuse);
    GpuScrub scrub;
    scrub.clean = fields.flag("clean").value_or(false);
    scrub.why = fields.text("why").value_or("");
    scrub.bytes = fields.number("bytes", 0, UINT64_MAX).value_or(0);
    fields.finish();
    if (!scrub.clean && scrub.why.empty()) refuseLine({"/why", "empty, though it is not clean"});
    return scrub;
}

}  // namespace hearth::pool::gpu
