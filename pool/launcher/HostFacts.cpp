#include "pool/launcher/HostFacts.h"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "pool/isolation/RuntimeAdvisories.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
Json hostFacts(const OciCommand& runtime, const image::ImageStore& images) {
    const OciCommand::Version version = runtime.version();
    const sys::CgroupVersion cgroup = sys::Cgroups::detect().version();
    Json list = Json::array();
    for (const image::Image& image : images.images()) {
        const image::ImageFacts facts = images.facts(image.digest);
        Json languages = Json::array();
        for (const auto& [name, how] : facts.languages.items()) {
            languages.push_back(name);
        }
        list.push_back({{"name", image.name},
                        {"digest", image.digest},
                        {"reference", image.reference},
                        {"languages", std::move(languages)},
                        {"unpacked", image.unpacked}});
    }
    const auto limit = sys::readFile("/proc/sys/user/max_user_namespaces", 32);
    return {
        {"version", version.version},
        {"commit", version.commit},
        {"holes", knownHoles(version.version, version.commit)},
        {"userNamespaces", ::access("/proc/self/ns/user", F_OK) == 0 && limit && *limit != "0\n"},
        {"seccomp",
         !version.seccomp.empty() && ::access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0},
        {"cgroup", cgroup == sys::CgroupVersion::V1   ? "v1"
                   : cgroup == sys::CgroupVersion::V2 ? "v2"
                                                      : "none"},
        {"images", std::move(list)}};
}

}  // namespace hearth::pool::launcher
