#include "pool/launcher/Inside.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::size_t kMaxAgent = 64U << 20U;
constexpr std::size_t kMaxDriver = 1U << 20U;

struct File {
    std::string path;  ///< in the folder
    std::string bytes;
    mode_t mode = 0444;
};

std::string bytesOf(const std::vector<sock_filter>& filter) {
    return {reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)};
}

std::vector<File> drivers(const std::filesystem::path& folder) {
    std::vector<File> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
        const std::string path = entry.path().lexically_relative(folder).string();
        if (!entry.is_regular_file() || entry.path().extension() == ".pyc") continue;
        files.push_back({path, sys::readFile(entry.path(), kMaxDriver).value_or("")});
    }
    std::sort(files.begin(), files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
    return files;
}

}  // namespace

std::string installInside(const std::string& parent, const std::string& agent_path,
                          seccomp::AgentIdentity identity) {
    const auto agent = sys::readFile(agent_path, kMaxAgent);
    if (!agent) throw std::runtime_error("there is no agent at " + agent_path);
    const std::filesystem::path beside = std::filesystem::path(agent_path).parent_path();
    std::vector<File> files = drivers(beside / "hearth-drivers");
    if (files.empty())
        throw std::runtime_error("there is no folder hearth-drivers beside " + agent_path);
    files.push_back({"agent", *agent, 0555});
    files.push_back({"tenant.bpf", bytesOf(seccomp::tenantFilter(identity))});
    files.push_back({"zygote.bpf", bytesOf(seccomp::zygoteFilter(identity))});
    files.push_back({"mark.bpf", bytesOf(seccomp::markFilter())});
    std::string contents;
    for (const File& file : files) contents += file.path + '\0' + toHex(sha256(file.bytes));
    const std::string path = parent + "/" + toHex(sha256(contents)).substr(0, 16);
    const std::string unfinished = path + ".unfinished";
    if (::access((path + "/agent").c_str(), X_OK) == 0) return path;
    sys::removeTree(unfinished);
    sys::makeDirectory(unfinished, 0755);
    for (const File& file : files) {
        const std::size_t slash = file.path.find('/');
        if (slash != std::string::npos) {
            sys::makeDirectory(unfinished + "/" + file.path.substr(0, slash), 0755);
        }
        sys::writeFile(unfinished + "/" + file.path, file.bytes, file.mode);
    }
    // Where another folder is mounted over: nothing can be made in a read-only mount.
    sys::makeDirectory(unfinished + "/layer", 0755);
    if (identity == seccomp::AgentIdentity::Tenant) {
        sys::makeDirectory(unfinished + "/start", 0755);
    }
    if (::rename(unfinished.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    return path;
}

}  // namespace hearth::pool::launcher
