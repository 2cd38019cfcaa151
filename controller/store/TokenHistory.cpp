#include "controller/store/TokenHistory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::controller {
namespace {

constexpr const char* kNever = "no\n";
constexpr const char* kHad = "yes\n";
constexpr std::size_t kMostRead = 64;
/// One id per slot; a slot lies in one sector, so a crash leaves it whole or empty.
constexpr std::size_t kSlotBytes = 64;
constexpr std::size_t kRevokedBytes = 256 * kSlotBytes;

std::string answerIn(const std::string& path) {
    try {
        return sys::readFile(path, kMostRead).value_or("");
    } catch (const std::system_error&) {
        return "";
    }
}

std::string freshOf(const std::string& path) {
    return path + ".new";
}

/// Writes a file beside it, syncs and renames it: a crash leaves the old content or the new.
void replaceFile(const std::string& path, std::string_view text) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const std::string fresh = freshOf(path);
    const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent) throwErrno("open", folder);
    {
        const Fd file(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) throwErrno("open", fresh);
        if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            throwErrno("write", fresh);
        }
        // Root may write the file offline; the server's user, who owns the folder, must read it.
        struct stat owner {};
        if (::fstat(parent.get(), &owner) != 0) throwErrno("stat", folder);
        if (::geteuid() == 0 && ::fchown(file.get(), owner.st_uid, owner.st_gid) != 0) {
            throwErrno("chown", fresh);
        }
        if (::fsync(file.get()) != 0) throwErrno("sync", fresh);
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    if (::fsync(parent.get()) != 0) throwErrno("sync", folder);
}

/// Takes no new block of the disk; true once the bytes are synced.
bool overwrite(const std::string& path, std::string_view bytes, std::size_t at) noexcept {
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    return file &&
           ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
               static_cast<ssize_t>(bytes.size()) &&
           ::fdatasync(file.get()) == 0;
}

}  // namespace

TokenHistory::TokenHistory(std::string path, bool doubtful) : path_(std::move(path)) {
    // Anything else there (damage, a folder) also counts as a yes.
    written_ = std::filesystem::exists(std::filesystem::symlink_status(path_));
    if (written_) had_ = answerIn(path_) != kNever;
    if (!written_ && doubtful) remember();
}

std::string TokenHistory::revokedPath() const {
    return std::filesystem::path(path_).replace_filename("revoked-tokens").string();
}

void TokenHistory::remember() {
    if (had_.load() && written_) return;
    put(kHad);
    had_ = true;
}

void TokenHistory::settle() noexcept {
    if (written_) return;
    try {
        put(kNever);
    } catch (const std::exception&) {
        return;
    }
}

void TokenHistory::put(const char* answer) {
    replaceFile(path_, answer);
    written_ = true;
}

void RevokedTokens::prepare() const noexcept {
    try {
        std::string slots = sys::readFile(path_, kRevokedBytes).value_or("");
        if (slots.size() == kRevokedBytes) return;
        slots.resize(kRevokedBytes, '\0');
        replaceFile(path_, slots);
    } catch (const std::exception&) {
        ::unlink(freshOf(path_).c_str());
    }
}

bool RevokedTokens::add(const std::string& id) const noexcept {
    try {
        const std::string slots = sys::readFile(path_, kRevokedBytes).value_or("");
        for (std::size_t at = 0; at + kSlotBytes <= slots.size(); at += kSlotBytes) {
            if (slots[at] != '\0') continue;
            return id.size() < kSlotBytes && overwrite(path_, id, at);
        }
    } catch (const std::exception&) {
        return false;
    }
    return false;
}

std::set<std::string> RevokedTokens::ids() const {
    const std::string slots = sys::readFile(path_, kRevokedBytes).value_or("");
    std::set<std::string> found;
    for (std::size_t at = 0; at < slots.size(); at += kSlotBytes) {
        const std::string id(slots.substr(at, kSlotBytes).c_str());
        if (!id.empty()) found.insert(id);
    }
    return found;
}

void RevokedTokens::clear() const noexcept {
    // An id that stays is removed from the database again, which is harmless.
    static_cast<void>(overwrite(path_, std::string(kRevokedBytes, '\0'), 0));
}

}  // namespace hearth::controller
