#include "controller/store/SecretKey.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"
#include "controller/journal/Journal.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSumBytes = 8;
constexpr const char* kCopyKey = "key";  ///< in the journal

/// The key and the beginning of its SHA-256: a file with another length or a wrong sum is damaged.
std::string fileOf(const std::string& key) {
    const Digest sum = sha256(key);
    return key + std::string(sum.begin(), sum.begin() + kSumBytes);
}

/// Writes a file beside it and renames that: a crash leaves the whole key or none.
void writeKey(const std::string& path, const std::string& key) {
    const std::string fresh = path + ".new";
    Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throwErrno("open", fresh);
    const std::string content = fileOf(key);
    if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
        throwErrno("write", fresh);
    }
    if (::fsync(fd.get()) != 0) throwErrno("fsync", fresh);
    if (::rename(fresh.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    // Ids and links made with the key must not outlive it: its name is synced before its use.
    const std::string folder = std::filesystem::path(path).parent_path().string();
    fd = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) throwErrno("sync", folder);
}

}  // namespace

std::string loadSecretKey(const std::string& path, const std::string& copy) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && errno != ENOENT) throwErrno("open", path);
    std::string found(kKeyBytes + kSumBytes + 1, '\0');
    const ssize_t read = fd ? ::read(fd.get(), found.data(), found.size()) : 0;
    found.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
    std::string key = found.substr(0, kKeyBytes);
    const bool copied = copy.size() == kKeyBytes;
    if (found.size() == kKeyBytes + kSumBytes && found == fileOf(key)) return key;
    if (fd && !copied) {
        throw std::runtime_error(path +
                                 " is damaged: restore it from a copy, or remove the file: then "
                                 "claimed workspaces, sessions and links end");
    }
    if (fd) std::filesystem::rename(path, path + ".damaged-" + newId(""));
    std::string fresh = copy;
    if (!copied) {
        fresh.resize(kKeyBytes);
        randomBytes(fresh.data(), fresh.size());
    }
    writeKey(path, fresh);
    return fresh;
}

std::string sharedKey(const std::string& folder, const std::string& name) {
    const std::string path = folder + "/" + name;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // a Secret's files are links
    std::string key(kKeyBytes + 1, '\0');
    const ssize_t read = fd ? ::read(fd.get(), key.data(), key.size()) : -1;
    if (read == static_cast<ssize_t>(kKeyBytes)) return key.substr(0, kKeyBytes);
    throw Error(ErrorCode::InvalidArgument,
                read < 0 ? "the shared key " + path + " cannot be read"
                         : "the shared key " + path + " does not have exactly 32 bytes")
        .hint("make it once for all replicas: head -c 32 /dev/urandom > " + name);
}

std::string keptSecretKey(const std::string& path, Journal& journal) {
    const std::string noted = journal.meta(kCopyKey);
    std::string copy;
    if (!base64UrlDecode(noted, copy)) copy.clear();
    std::string key = loadSecretKey(path, copy);
    const std::string fresh = base64UrlEncode(key);
    if (fresh == noted) return key;
    try {
        journal.setMeta(kCopyKey, fresh);
    } catch (const std::exception&) {
        return key;  // a full disk must not prevent a start; the next start tries again
    }
    return key;
}

}  // namespace hearth::controller
