#include "pool/gpu/cdi/CdiSpecs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/spec/GpuUuid.h"
#include "pool/sys/Files.h"

namespace hearth::pool::cdi {
namespace {

constexpr std::size_t kMostFiles = 64;  // per folder
constexpr std::size_t kMaxFileBytes = 1U << 20U;
constexpr std::size_t kMostTold = 8;
constexpr mode_t kWritableByOthers = 022;

/// Returns why a file or folder must not be believed; empty if it may be.
std::string distrust(const struct stat& status, uid_t owner) {
    if (status.st_uid != owner) {
        return "belongs to user " + std::to_string(status.st_uid) + ", not to " +
               std::to_string(owner);
    }
    if ((status.st_mode & kWritableByOthers) != 0) {
        return "others than its owner may write to it; chmod go-w";
    }
    return {};
}

std::string readCdiFile(int folder, const std::string& name, uid_t owner) {
    const auto refuse = [](const std::string& why) {
        throw Error(ErrorCode::InvalidArgument, why);
    };
    const Fd fd(
        ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd) {
        refuse(errno == ELOOP ? "is a symbolic link"
                              : std::string("cannot be opened: ") + std::strerror(errno));
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throwErrno("fstat", name);
    if (!S_ISREG(status.st_mode)) refuse("is not a regular file");
    if (const std::string why = distrust(status, owner); !why.empty()) refuse(why);
    std::string text(kMaxFileBytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) refuse(std::string("cannot be read: ") + std::strerror(errno));
        if (n == 0) break;
        size += static_cast<std::size_t>(n);
    }
    if (size > kMaxFileBytes) refuse("is larger than 1 MiB");
    text.resize(size);
    return text;
}

}  // namespace

CdiSpecs CdiSpecs::read(const CdiFolders& folders) {
    CdiSpecs specs;
    specs.folders_ = folders.paths;
    for (std::size_t i = 0; i < folders.paths.size(); ++i) {
        specs.readFolder(folders.paths[i], i, folders.owner);
    }
    return specs;
}

void CdiSpecs::readFolder(const std::string& path, std::size_t folder, uid_t owner) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW));
    if (!fd) {
        if (errno != ENOENT) problems_.push_back({path, std::strerror(errno)});
        return;
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throwErrno("fstat", path);
    if (const std::string why = distrust(status, owner); !why.empty()) {
        problems_.push_back({path, why});
        return;
    }
    std::size_t count = 0;
    for (const std::string& name : sys::listDirectory(path)) {
        const bool json = name.ends_with(".json");
        if (!json && !name.ends_with(".yaml")) continue;
        std::string file = path;
        file.append("/").append(name);
        if (++count > kMostFiles) {
            problems_.push_back(
                {file, "the folder has more than " + std::to_string(kMostFiles) + " files"});
            return;
        }
        try {
            take(file,
                 parseCdi(readCdiFile(fd.get(), name, owner),
                          json ? CdiFormat::Json : CdiFormat::Yaml),
                 folder);
        } catch (const Error& e) {
            problems_.push_back({file, e.what()});
        }
    }
}

void CdiSpecs::take(std::string file, CdiDocument document, std::size_t folder) {
    const std::size_t index = documents_.size();
    for (const auto& [name, edits] : document.devices) {
        Entry& entry = devices_[document.kind + "=" + name];
        if (entry.folder != folder) entry = {folder, {}};  // from a folder that counts less
        entry.documents.push_back(index);
    }
    files_.push_back(std::move(file));
    documents_.push_back(std::move(document));
}

std::vector<std::string> CdiSpecs::gpuUuids() const {
    const std::string kind = std::string(kGpuKind) + "=";
    std::vector<std::string> uuids;
    for (const auto& [name, entry] : devices_) {
        if (!name.starts_with(kind) || entry.documents.size() > 1) continue;
        if (isGpuUuid(name.substr(kind.size()))) uuids.push_back(name.substr(kind.size()));
    }
    return uuids;
}

std::string CdiSpecs::whatWasRead() const {
    std::vector<std::string> told;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const std::size_t count = documents_[i].devices.size();
        told.push_back(files_[i] + " (" + std::to_string(count) + " of kind " + documents_[i].kind +
                       ")");
    }
    for (const Problem& problem : problems_) {
        told.push_back(problem.file + " (refused: " + problem.why + ")");
    }
    std::string text;
    if (told.empty()) {
        for (const std::string& folder : folders_) text += (text.empty() ? "" : ", ") + folder;
        return "there is no .json or .yaml file in " + text;
    }
    for (std::size_t i = 0; i < std::min(told.size(), kMostTold); ++i) {
        text += (i == 0 ? "" : ", ") + told[i];
    }
    if (told.size() > kMostTold) {
        text += " and " + std::to_string(told.size() - kMostTold) + " more";
    }
    return "read: " + text;
}

CdiEdits CdiSpecs::gpus(const std::vector<std::string>& uuids) const {
    CdiEdits all;
    std::set<std::size_t> used;
    for (const std::string& uuid : uuids) {
        const std::string name = std::string(kGpuKind) + "=" + uuid;
        const auto found = devices_.find(name);
        if (found == devices_.end()) {
            throw Error(ErrorCode::Unsupported,
                        "no CDI file names the device " + name + "; " + whatWasRead())
                .hint(kHowToNameGpus);
        }
        const std::vector<std::size_t>& documents = found->second.documents;
        if (documents.size() > 1) {
            throw Error(ErrorCode::Unsupported,
                        "the CDI device " + name + " is in two files of one folder, " +
                            files_[documents[0]] + " and " + files_[documents[1]])
                .hint("remove one of the two files");
        }
        const CdiDocument& document = documents_[documents.front()];
        try {
            // The file's own edits come first, and only once.
            if (used.insert(documents.front()).second) all.merge(document.edits);
            all.merge(document.devices.at(uuid));
        } catch (const Error& e) {
            throw Error(ErrorCode::Unsupported, "the CDI device " + name + " of " +
                                                    files_[documents.front()] +
                                                    " contradicts what comes with it: " + e.what())
                .hint(kHowToNameGpus);
        }
    }
    return all;
}

}  // namespace hearth::pool::cdi
