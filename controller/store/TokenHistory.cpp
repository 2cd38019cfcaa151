#include "controller/store/TokenHistory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::controller {
namespace {

constexpr const char* kNever = "no\n";
constexpr const char* kHad = "yes\n";
constexpr std::size_t kMostRead = 64;

std::string answerIn(const std::string& path) {
    try {
        return sys::readFile(path, kMostRead).value_or("");
    } catch (const std::system_error&) {
        return "";
    }
}

}  // namespace

TokenHistory::TokenHistory(std::string path, bool doubtful) : path_(std::move(path)) {
    // What stands there and is no answer (damage, a folder) is a yes, too.
    written_ = std::filesystem::exists(std::filesystem::symlink_status(path_));
    if (written_) had_ = answerIn(path_) != kNever;
    if (!written_ && doubtful) remember();
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
    const std::string text = answer;
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const std::string fresh = path_ + ".new";
    const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent) throwErrno("open", folder);
    {
        const Fd file(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) throwErrno("open", fresh);
        if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            throwErrno("write", fresh);
        }
        // Root may write it offline; the server's user, who has the folder, must read it.
        struct stat owner {};
        if (::fstat(parent.get(), &owner) != 0) throwErrno("stat", folder);
        if (::geteuid() == 0 && ::fchown(file.get(), owner.st_uid, owner.st_gid) != 0) {
            throwErrno("chown", fresh);
        }
        if (::fsync(file.get()) != 0) throwErrno("sync", fresh);
    }
    if (::rename(fresh.c_str(), path_.c_str()) != 0) throwErrno("rename", path_);
    if (::fsync(parent.get()) != 0) throwErrno("sync", folder);
    written_ = true;
}

}  // namespace hearth::controller
