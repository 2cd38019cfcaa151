#include "pool/launcher/Inside.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::size_t kMaxAgent = 64U << 20U;

}  // namespace

std::string installInside(const std::string& parent, const std::string& agent_path,
                          seccomp::AgentIdentity identity) {
    const auto agent = sys::readFile(agent_path, kMaxAgent);
    if (!agent) throw std::runtime_error("there is no agent at " + agent_path);
    const std::vector<sock_filter> filter = seccomp::tenantFilter(identity);
    const std::string program(reinterpret_cast<const char*>(filter.data()),
                              filter.size() * sizeof(sock_filter));
    const std::string path =
        parent + "/" + toHex(sha256(toHex(sha256(*agent)) + program)).substr(0, 16);
    const std::string unfinished = path + ".unfinished";
    if (::access((path + "/agent").c_str(), X_OK) == 0) return path;
    sys::removeTree(unfinished);
    sys::makeDirectory(unfinished, 0755);
    sys::writeFile(unfinished + "/agent", *agent, 0555);
    sys::writeFile(unfinished + "/tenant.bpf", program, 0444);
    // Where another folder is mounted over: nothing can be made in a read-only mount.
    if (identity == seccomp::AgentIdentity::Tenant) {
        sys::makeDirectory(unfinished + "/start", 0755);
    }
    if (::rename(unfinished.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    return path;
}

}  // namespace hearth::pool::launcher
