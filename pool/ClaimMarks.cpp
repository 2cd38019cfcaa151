#include "pool/ClaimMarks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"

namespace hearth::pool {

void ClaimMarks::set(const SandboxId& id) const {
    const std::string path = directory_ + "/" + id;
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throwErrno("open", path);
}

void ClaimMarks::clear(const SandboxId& id) const {
    const std::string path = directory_ + "/" + id;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throwErrno("unlink", path);
}

bool ClaimMarks::exists(const SandboxId& id) const {
    return ::access((directory_ + "/" + id).c_str(), F_OK) == 0;
}

std::vector<SandboxId> ClaimMarks::all() const {
    std::vector<SandboxId> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
        std::string name = entry.path().filename().string();
        if (isId(name, "sb_")) found.push_back(std::move(name));
    }
    return found;
}

}  // namespace hearth::pool
