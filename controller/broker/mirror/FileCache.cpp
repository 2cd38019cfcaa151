#include "controller/broker/mirror/FileCache.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/broker/Dialer.h"

namespace hearth::broker {
namespace {

namespace fs = std::filesystem;

constexpr int kBadGateway = 502;
constexpr std::uint64_t kHeldBack = 4'096;

/// A running hash; OpenSSL's, freed at the end.
class Hasher {
public:
    explicit Hasher(const std::string& algorithm)
        : context_(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free) {
        const EVP_MD* kind = algorithm == "sha512" ? ::EVP_sha512() : ::EVP_sha256();
        if (!context_ || ::EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1) {
            throw std::bad_alloc();
        }
    }
    void add(std::string_view bytes) {
        ::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
    }
    std::string hex() {
        std::uint8_t out[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        ::EVP_DigestFinal_ex(context_.get(), out, &size);
        return toHex(out, size);
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context_;
};

bool isKey(const std::string& name) {
    const std::size_t dash = name.find('-');
    return dash != std::string::npos &&
           !ContentHash{name.substr(0, dash), name.substr(dash + 1)}.key().empty();
}

/// Whoever waits for a file hears of it even where nobody ever begins to fetch it.
class Promise {
public:
    explicit Promise(std::shared_ptr<CachedFile> file) : file_(std::move(file)) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    ~Promise() {
        if (!kept_) file_->failed("stopped", "the server is stopping");
    }
    void keep() noexcept { kept_ = true; }

private:
    const std::shared_ptr<CachedFile> file_;
    bool kept_ = false;
};

bool writeAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

std::string ContentHash::key() const {
    const std::size_t digits = algorithm == "sha256" ? 64 : algorithm == "sha512" ? 128 : 0;
    const bool sound =
        digits > 0 && hex.size() == digits && std::all_of(hex.begin(), hex.end(), [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        });
    return sound ? algorithm + "-" + hex : std::string();
}

CachedFile::CachedFile(Fd fd, std::uint64_t size)
    : fd_(std::move(fd)), size_(size), written_(size), begun_(true), complete_(true) {}

CachedFile::CachedFile(Fd fd) : fd_(std::move(fd)) {}

std::size_t CachedFile::read(std::uint64_t offset, char* into, std::size_t room) {
    std::uint64_t end = 0;
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
            end = complete_ || written_ < kHeldBack ? (complete_ ? written_ : 0)
                                                    : written_ - kHeldBack;
            return complete_ || !reason_.empty() || end > offset;
        });
        if (!complete_ && !reason_.empty()) throw Refused(kBadGateway, reason_, message_);
    }
    if (offset >= end) return 0;
    room = static_cast<std::size_t>(std::min<std::uint64_t>(room, end - offset));
    const ssize_t n = ::pread(fd_.get(), into, room, static_cast<off_t>(offset));
    if (n <= 0) throw Refused(kBadGateway, "cache_broken", "the mirror cannot read its own file");
    return static_cast<std::size_t>(n);
}

std::optional<std::uint64_t> CachedFile::size() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ || !reason_.empty(); });
    if (!begun_) throw Refused(kBadGateway, reason_, message_);
    return size_;
}

void CachedFile::begun(std::optional<std::uint64_t> size) {
    const std::lock_guard lock(mutex_);
    size_ = size;
    begun_ = true;
    changed_.notify_all();
}

void CachedFile::grew(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    written_ += bytes;
    changed_.notify_all();
}

void CachedFile::complete() {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    begun_ = true;
    changed_.notify_all();
}

void CachedFile::failed(std::string reason, std::string message) {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    message_ = std::move(message);
    changed_.notify_all();
}

FileCache::FileCache(std::string directory, std::uint64_t max_bytes, Run run)
    : directory_(std::move(directory)), max_bytes_(max_bytes), run_(std::move(run)) {
    fs::create_directories(directory_);
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
        const std::string name = entry.path().filename();
        if (!entry.is_regular_file()) continue;
        if (!isKey(name)) {
            fs::remove(entry.path());
            continue;
        }
        found.emplace_back(entry.last_write_time(), name);
    }
    std::sort(found.begin(), found.end());
    const std::lock_guard lock(mutex_);
    for (const auto& [time, name] : found) add(name, fs::file_size(pathOf(name)));
    evict();
}

std::string FileCache::pathOf(const std::string& key) const {
    return directory_ + "/" + key;
}

std::uint64_t FileCache::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_ + arriving_;
}

void FileCache::add(const std::string& key, std::uint64_t size) {
    if (stored_.count(key) != 0) return;
    by_use_.push_back(key);
    stored_[key] = {size, std::prev(by_use_.end())};
    bytes_ += size;
}

void FileCache::evict() {
    while (bytes_ > max_bytes_ && !by_use_.empty()) {
        const std::string key = by_use_.front();
        by_use_.pop_front();
        bytes_ -= stored_[key].size;
        stored_.erase(key);
        ::unlink(pathOf(key).c_str());  // who reads it has it open
    }
}

std::shared_ptr<CachedFile> FileCache::openStored(const std::string& key) {
    const auto found = stored_.find(key);
    if (found == stored_.end()) return nullptr;
    Fd fd(::open(pathOf(key).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != found->second.size) {
        bytes_ -= found->second.size;  // somebody has tidied up behind our back
        by_use_.erase(found->second.used);
        stored_.erase(found);
        return nullptr;
    }
    by_use_.splice(by_use_.end(), by_use_, found->second.used);
    ::futimens(fd.get(), nullptr);  // the order of use after a restart
    return std::make_shared<CachedFile>(std::move(fd), found->second.size);
}

FileCache::Found FileCache::open(const ContentHash& hash, const Fetch& from) {
    const std::string key = hash.key();
    if (key.empty()) throw Refused(kBadGateway, "no_hash", "the index tells no hash of the file");
    std::shared_ptr<CachedFile> file;
    Fd out;
    std::string partial;
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = on_the_way_.find(key); known != on_the_way_.end()) {
            return {known->second, true};
        }
        if (std::shared_ptr<CachedFile> stored = openStored(key)) return {stored, true};
        partial = directory_ + "/partial." + std::to_string(++partials_);
        out = Fd(::open(partial.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        Fd in(::open(partial.c_str(), O_RDONLY | O_CLOEXEC));
        if (!out || !in) {
            throw Refused(kBadGateway, "cache_broken", "the mirror's cache cannot be written to");
        }
        file = std::make_shared<CachedFile>(std::move(in));
        on_the_way_[key] = file;
    }
    auto owned = std::make_shared<Fd>(std::move(out));
    bool runs = false;
    try {
        auto promise = std::make_shared<Promise>(file);
        runs = run_([this, hash, key, owned, partial, file, from, promise] {
            promise->keep();
            fetch(hash, key, std::move(*owned), partial, file, from);
        });
    } catch (const std::exception&) {
        runs = false;  // told below: whoever waits must hear of it
    }
    if (!runs) {
        ::unlink(partial.c_str());
        const std::lock_guard lock(mutex_);
        on_the_way_.erase(key);
        file->failed("busy", "too much is being fetched; try again");
    }
    return {file, false};
}

void FileCache::fetch(const ContentHash& hash, const std::string& key, Fd out,
                      const std::string& partial, const std::shared_ptr<CachedFile>& file,
                      const Fetch& from) {
    std::uint64_t size = 0;
    std::uint64_t counted = 0;  // in arriving_
    std::string reason;
    std::string message;
    try {
        Hasher hasher(hash.algorithm);
        from({[&](std::optional<std::uint64_t> told) {
                  if (told && *told > max_bytes_) {
                      throw Refused(kBadGateway, "too_large", "the file is larger than the cache");
                  }
                  file->begun(told);
              },
              [&](std::string_view bytes) {
                  // Those of the task, its promise and the table: nobody else reads it any more.
                  constexpr long kNobody = 3;
                  if (file.use_count() <= kNobody) {
                      throw Refused(kBadGateway, "abandoned", "nobody waited for the file");
                  }
                  {
                      const std::lock_guard lock(mutex_);
                      arriving_ += bytes.size();
                      counted += bytes.size();
                      if (arriving_ > max_bytes_) {
                          throw Refused(kBadGateway, "cache_full",
                                        "more is being fetched than the mirror may keep");
                      }
                  }
                  if (!writeAll(out.get(), bytes)) {
                      throw Refused(kBadGateway, "cache_full", "the mirror's disk is full");
                  }
                  hasher.add(bytes);
                  size += bytes.size();
                  file->grew(bytes.size());
                  return true;
              }});
        if (hasher.hex() != hash.hex) {
            throw Refused(kBadGateway, "hash_mismatch",
                          "the file is not what the index says it is");
        }
        const std::lock_guard lock(mutex_);
        if (::rename(partial.c_str(), pathOf(key).c_str()) != 0) {
            throw Refused(kBadGateway, "cache_broken", "the mirror's cache cannot be written to");
        }
        arriving_ -= counted;
        add(key, size);
        evict();
        on_the_way_.erase(key);
        file->complete();
        return;
    } catch (const Refused& e) {
        reason = e.reason();
        message = e.what();
    } catch (const std::exception& e) {  // the fetching thread's top
        reason = "failed";
        message = "the file could not be fetched";
    }
    ::unlink(partial.c_str());
    {
        const std::lock_guard lock(mutex_);
        arriving_ -= counted;
        on_the_way_.erase(key);
    }
    file->failed(std::move(reason), std::move(message));
}

}  // namespace hearth::broker
