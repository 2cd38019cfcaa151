#include "pool/isolation/AgentFolder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::size_t kMaxAgent = 64U << 20U;
constexpr std::size_t kMaxDriver = 1U << 20U;

struct File {
    std::string path;  ///< its place in the folder
    std::string bytes;
    mode_t mode = 0444;
};

std::string bytesOf(const std::vector<sock_filter>& filter) {
    return {reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)};
}

/// True if Python compares this compiled file with its source by a hash (PEP 552), as the build
/// makes it. A Python that ran here has written the others, with a time, which a copy changes.
bool isOfBuild(std::string_view pyc) {
    constexpr std::string_view kCheckedHash("\x03\0\0\0", 4);
    return pyc.substr(std::min<std::size_t>(4, pyc.size()), 4) == kCheckedHash;
}

std::vector<File> drivers(const std::filesystem::path& folder) {
    std::vector<File> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
        const std::string path = entry.path().lexically_relative(folder).string();
        if (!entry.is_regular_file()) continue;
        std::string bytes = sys::readFile(entry.path(), kMaxDriver).value_or("");
        if (entry.path().extension() == ".pyc" && !isOfBuild(bytes)) continue;
        files.push_back({path, std::move(bytes)});
    }
    std::sort(files.begin(), files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
    return files;
}

bool isWhole(const std::string& path, const File& file) {
    try {
        struct stat status {};
        return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
               (status.st_mode & 07777) == file.mode &&
               sys::readFile(path, file.bytes.size() + 1) == file.bytes;
    } catch (const std::exception&) {
        return false;
    }
}

void makeFolder(const std::string& path) {
    std::error_code none;
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, none))) {
        sys::removeTree(path);
        sys::makeDirectory(path, 0755);
    }
}

/// Writes files that are missing or differ. Each file is replaced whole: running sandboxes have the
/// folder mounted.
void fill(const std::string& folder, const std::vector<File>& files) {
    for (const File& file : files) {
        const std::string path = folder + "/" + file.path;
        for (std::size_t at = 0; (at = file.path.find('/', at)) != std::string::npos; ++at) {
            makeFolder(folder + "/" + file.path.substr(0, at));
        }
        if (isWhole(path, file)) continue;
        std::error_code none;
        if (std::filesystem::is_directory(std::filesystem::symlink_status(path, none))) {
            sys::removeTree(path);
        }
        const std::string fresh = path + ".new";
        sys::removeTree(fresh);
        sys::writeFile(fresh, file.bytes, file.mode);
        if (::rename(fresh.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    }
}

/// Needed because after a power cut a name must not come back without its bytes.
void syncFileSystemOf(const std::string& folder) {
    const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::syncfs(fd.get()) != 0) throwErrno("sync", folder);
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
    std::string path = parent + "/" + toHex(sha256(contents)).substr(0, 16);
    const std::string unfinished = path + ".unfinished";
    std::error_code none;
    const bool there = std::filesystem::is_directory(std::filesystem::symlink_status(path, none));
    const std::string folder = there ? path : unfinished;
    if (!there) {
        sys::removeTree(path);
        sys::removeTree(unfinished);
        sys::makeDirectory(unfinished, 0755);
    }
    fill(folder, files);
    // The mount points for other folders: nothing can be made in a read-only mount.
    makeFolder(folder + "/layer");
    makeFolder(folder + "/layer/site-packages");  // kLayerPlace
    makeFolder(folder + "/run");
    if (identity == seccomp::AgentIdentity::Tenant) makeFolder(folder + "/start");
    syncFileSystemOf(folder);
    if (!there && ::rename(unfinished.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    return path;
}

}  // namespace hearth::pool::launcher
