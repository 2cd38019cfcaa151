#include "pool/launcher/gpu/TrustedProgram.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace hearth::pool::launcher {
namespace {

constexpr mode_t kOthersWrite = 022;
constexpr mode_t kAnyExecutes = 0111;

}  // namespace

std::string distrustProgram(const std::string& path, uid_t owner, std::string& program) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return "is not on this machine: " + error.message();
    program = real;
    std::filesystem::path at;
    for (const std::filesystem::path& part : real) {
        at /= part;
        struct stat status {};
        if (::lstat(at.c_str(), &status) != 0) return at.string() + ": " + std::strerror(errno);
        if (status.st_uid != 0 && status.st_uid != owner) {
            return at.string() + " belongs to user " + std::to_string(status.st_uid);
        }
        // In a sticky folder nobody can replace another user's entry.
        const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
        if ((status.st_mode & kOthersWrite) != 0 && !sticky) {
            return at.string() + " may be written to by others than its owner";
        }
        if (at == real && (!S_ISREG(status.st_mode) || (status.st_mode & kAnyExecutes) == 0)) {
            return at.string() + " is no program";
        }
    }
    return {};
}

}  // namespace hearth::pool::launcher
