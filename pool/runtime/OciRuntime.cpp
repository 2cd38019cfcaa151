#include "pool/runtime/OciRuntime.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Files.h"

namespace hearth::pool {
namespace {

constexpr int kBacklog = 16;

void requireId(const SandboxId& id) {
    if (!isId(id, "sb_")) throw Error(ErrorCode::InvalidArgument, "not a sandbox id");
}

Fd newSocket() {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throwErrno("socket");
    return fd;
}

sockaddr_un addressOf(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throwErrno(ENAMETOOLONG, "socket", path);
    std::copy(path.begin(), path.end(), address.sun_path);
    return address;
}

Fd listenAt(const std::string& path) {
    Fd fd = newSocket();
    const sockaddr_un address = addressOf(path);
    // The mode is set on the descriptor first: bind() makes the file with it, less the umask.
    if (::fchmod(fd.get(), 0600) != 0) throwErrno("chmod", path);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throwErrno("bind", path);
    }
    if (::listen(fd.get(), kBacklog) != 0) throwErrno("listen", path);
    return fd;
}

}  // namespace

OciRuntime::OciRuntime(const Instance& instance, LauncherClient& launcher)
    : names_(instance), launcher_(launcher), cgroups_(sys::Cgroups::detect()) {}

void OciRuntime::create(const SandboxId& id, const SandboxSpec& spec) {
    requireId(id);
    const std::string path = names_.socket(id);
    const Fd listening = listenAt(path);
    try {
        launcher_.create(id, spec, listening.get());
    } catch (...) {
        sys::removeFile(path);
        throw;
    }
}

void OciRuntime::destroy(const SandboxId& id) {
    requireId(id);
    launcher_.destroy(id);
}

std::vector<SandboxInfo> OciRuntime::list() {
    std::vector<SandboxInfo> sandboxes;
    for (LauncherClient::Found& found : launcher_.list()) {
        sandboxes.push_back(
            {std::move(found.id), found.alive, std::move(found.labels), found.created_unix_ms});
    }
    return sandboxes;
}

Fd OciRuntime::connect(const SandboxId& id) {
    requireId(id);
    Fd fd = newSocket();
    const sockaddr_un address = addressOf(names_.socket(id));
    while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno != EINTR) throwErrno("connect", names_.socket(id));
    }
    return fd;
}

std::optional<SandboxUsage> OciRuntime::usage(const SandboxId& id) {
    requireId(id);
    const std::optional<sys::CgroupUsage> read = sys::readUsage(cgroups_, names_.cgroup(id));
    if (!read) return std::nullopt;
    return SandboxUsage{read->cpu_ns, read->memory_bytes, read->memory_peak_bytes, read->processes,
                        read->oom_kills};
}

std::string OciRuntime::resolveImage(const std::string& name) {
    return launcher_.prepareImage(name);
}

void OciRuntime::sweep(const std::vector<SandboxId>& keep) {
    launcher_.sweep(keep);
}

RuntimeFacts OciRuntime::facts() {
    const Json told = launcher_.facts();
    RuntimeFacts facts;
    facts.name = "oci";
    facts.version = told.at("version").get<std::string>();
    facts.user_namespaces = told.at("userNamespaces").get<bool>();
    facts.seccomp = told.at("seccomp").get<bool>();
    facts.cgroup = told.at("cgroup").get<std::string>();
    for (const Json& hole : told.at("holes")) facts.holes.push_back(hole.get<std::string>());
    for (const Json& image : told.at("images")) {
        if (image.at("unpacked").get<bool>())
            facts.images.push_back(image.at("name").get<std::string>());
    }
    return facts;
}

}  // namespace hearth::pool
