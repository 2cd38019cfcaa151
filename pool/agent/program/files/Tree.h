#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

#include "base/Fd.h"

namespace hearth::agent {

constexpr int kMaxDepth = 64;
constexpr int kMaxVisits = 200'000;
/// Opens a directory found in a walk: never a link, never a file that blocks.
constexpr int kWalkFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
/// The prefix of an unfinished file's name; no listing and no archive shows such a file.
constexpr std::string_view kTemporary = ".hearth-write-";

inline bool isTemporary(std::string_view name) {
    return name.substr(0, kTemporary.size()) == kTemporary;
}
/// Returns a new name with this prefix.
std::string temporaryName();

/// Owns an open directory stream; takes the descriptor.
class Directory {
public:
    explicit Directory(Fd fd) : stream_(fd ? fdopendir(fd.get()) : nullptr) {
        if (stream_ != nullptr) fd.release();
    }
    Directory(Directory&& other) noexcept : stream_(other.stream_) { other.stream_ = nullptr; }
    Directory& operator=(Directory&&) = delete;
    ~Directory() {
        if (stream_ != nullptr) closedir(stream_);
    }
    explicit operator bool() const noexcept { return stream_ != nullptr; }
    int fd() const noexcept { return dirfd(stream_); }
    /// Returns the next name except "." and ".."; null at the end.
    const char* next() {
        const dirent* entry = nextEntry();
        return entry == nullptr ? nullptr : entry->d_name;
    }
    const dirent* nextEntry() {
        while (const dirent* entry = readdir(stream_)) {
            if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
                return entry;
            }
        }
        return nullptr;
    }

private:
    DIR* stream_;
};

/// The limit of one walk, however the tenant has built the tree.
struct Budget {
    const std::atomic<bool>& cancelled;
    int visits = kMaxVisits;
    bool spend() { return --visits >= 0 && !cancelled.load(std::memory_order_relaxed); }
};

inline std::string joined(const std::string& directory, std::string_view name) {
    return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

/// Removes the entry `name` of `parent` and its content down to `depth`. False with errno.
bool removeTree(int parent, const char* name, int depth, Budget& budget);

}  // namespace hearth::agent
