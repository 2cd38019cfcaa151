#include "controller/egress/mirror/store/FileCache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/Digest.h"
#include "base/Error.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHeldBack = 4'096;

bool isKey(const std::string& name) {
    const std::size_t dash = name.find('-');
    return dash != std::string::npos &&
           !ContentHash{name.substr(0, dash), name.substr(dash + 1)}.key().empty();
}

Refused cacheFull() {
    return {kBadGateway, "cache_full", "more is being fetched than the mirror may keep"};
}

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
        const MutexLock lock(mutex_);
        changed_.wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) {
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
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) { return begun_ || !reason_.empty(); });
    if (!begun_) throw Refused(kBadGateway, reason_, message_);
    return size_;
}

std::uint64_t CachedFile::whole() {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) { return complete_ || !reason_.empty(); });
    if (!complete_) throw Refused(kBadGateway, reason_, message_);
    return written_;
}

void CachedFile::begun(std::optional<std::uint64_t> size) {
    const MutexLock lock(mutex_);
    size_ = size;
    begun_ = true;
    changed_.notifyAll();
}

void CachedFile::grew(std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    written_ += bytes;
    changed_.notifyAll();
}

void CachedFile::complete() {
    const MutexLock lock(mutex_);
    complete_ = true;
    begun_ = true;
    changed_.notifyAll();
}

void CachedFile::failed(std::string reason, std::string message) {
    const MutexLock lock(mutex_);
    reason_ = std::move(reason);
    message_ = std::move(message);
    changed_.notifyAll();
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
    const MutexLock lock(mutex_);
    for (const auto& [time, name] : found) add(name, fs::file_size(pathOf(name)));
    evict();
}

std::string FileCache::pathOf(const std::string& key) const {
    return directory_ + "/" + key;
}

std::uint64_t FileCache::bytes() const {
    const MutexLock lock(mutex_);
    return bytes_ + arriving_;
}

std::optional<std::uint64_t> FileCache::sizeOf(const ContentHash& hash) const {
    const MutexLock lock(mutex_);
    const auto found = stored_.find(hash.key());
    return found == stored_.end() ? std::nullopt : std::optional(found->second.size);
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
        ::unlink(pathOf(key).c_str());  // present readers have it open
    }
}

std::shared_ptr<CachedFile> FileCache::openStored(const std::string& key) {
    const auto found = stored_.find(key);
    if (found == stored_.end()) return nullptr;
    Fd fd(::open(pathOf(key).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != found->second.size) {
        bytes_ -= found->second.size;  // somebody else has removed or changed the file
        by_use_.erase(found->second.used);
        stored_.erase(found);
        return nullptr;
    }
    by_use_.splice(by_use_.end(), by_use_, found->second.used);
    ::futimens(fd.get(), nullptr);  // keeps the order of use across a restart
    return std::make_shared<CachedFile>(std::move(fd), found->second.size);
}

/// A file during its fetch. Waiting readers are notified even if the fetch never begins.
class FileCache::Arrival {
public:
    Arrival(ContentHash what, std::string where, Fd to, std::shared_ptr<CachedFile> into, Fetch how)
        : hash(std::move(what)),
          key(hash.key()),
          partial(std::move(where)),
          out(std::move(to)),
          file(std::move(into)),
          from(std::move(how)) {}
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    ~Arrival() {
        if (!begun) file->failed("stopped", "the server is stopping");
    }

    const ContentHash hash;
    const std::string key;
    const std::string partial;
    const Fd out;
    const std::shared_ptr<CachedFile> file;
    const Fetch from;
    std::atomic<bool> begun{false};
    std::string tenant;         // guarded by mutex_: the turn it is fetched in
    std::uint64_t counted = 0;  // guarded by mutex_: its share of arriving_
    bool gave_way = false;      // guarded by mutex_: another tenant needed the room
};

std::shared_ptr<FileCache::Arrival> FileCache::arriving(const ContentHash& hash,
                                                        const Fetch& from) {
    const std::string partial = directory_ + "/partial." + std::to_string(++partials_);
    Fd out(::open(partial.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    Fd in(::open(partial.c_str(), O_RDONLY | O_CLOEXEC));
    if (!out || !in) {
        throw Refused(kBadGateway, "cache_broken", "the mirror's cache cannot be written to");
    }
    return std::make_shared<Arrival>(hash, partial, std::move(out),
                                     std::make_shared<CachedFile>(std::move(in)), from);
}

/// Ends the arrival; another arrival with the same key may begin or be under way.
void FileCache::leave(Arrival& arrival) {
    if (arrival.counted > 0) {
        arriving_ -= arrival.counted;
        const auto found = arriving_of_.find(arrival.tenant);
        if ((found->second -= arrival.counted) == 0) arriving_of_.erase(found);
        arrival.counted = 0;
    }
    const auto known = on_the_way_.find(arrival.key);
    if (known != on_the_way_.end() && known->second.file == arrival.file) on_the_way_.erase(known);
}

FileCache::Found FileCache::open(const ContentHash& hash, const std::string& tenant,
                                 const Fetch& from) {
    const std::string key = hash.key();
    if (key.empty()) throw Refused(kBadGateway, "no_hash", "the index has no hash of the file");
    std::shared_ptr<Arrival> arrival;
    std::shared_ptr<CachedFile> coming;
    {
        const MutexLock lock(mutex_);
        if (const auto known = on_the_way_.find(key); known != on_the_way_.end()) {
            coming = known->second.file;
            // A fetch that has not begun may also start in this tenant's turn.
            const std::shared_ptr<Arrival> waits = known->second.arrival.lock();
            const bool joins =
                waits && !waits->begun && known->second.tenants.insert(tenant).second;
            if (joins) arrival = waits;
        } else if (std::shared_ptr<CachedFile> stored = openStored(key)) {
            return {stored, true};
        } else {
            arrival = arriving(hash, from);
            on_the_way_[key] = {arrival->file, arrival, {tenant}};
        }
    }
    if (coming) {
        if (arrival) run(arrival, tenant);
        return {std::move(coming), true};
    }
    Found found{arrival->file, false};
    if (!run(arrival, tenant)) {
        ::unlink(arrival->partial.c_str());
        const MutexLock lock(mutex_);
        leave(*arrival);
        arrival->begun = true;
        arrival->file->failed("busy", "too much is being fetched; try again");
    }
    return found;
}

bool FileCache::run(const std::shared_ptr<Arrival>& arrival, const std::string& tenant) {
    try {
        return run_(tenant, [this, arrival, tenant] {
            if (!arrival->begun.exchange(true)) fetch(*arrival, tenant);
        });
    } catch (const std::exception&) {
        return false;  // the caller notifies waiting readers
    }
}

/// Frees room for arriving files. Throws Refused if the writer's tenant has most of them; else
/// drops the largest file of the tenant that has most, and frees its bytes at once.
void FileCache::makeRoom(const Arrival& writer) {
    const auto most =
        std::max_element(arriving_of_.begin(), arriving_of_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    std::shared_ptr<Arrival> largest;
    if (most->second > arriving_of_[writer.tenant]) {
        for (const auto& [key, each] : on_the_way_) {
            std::shared_ptr<Arrival> arrival = each.arrival.lock();
            if (!arrival || arrival->tenant != most->first || arrival->counted == 0) continue;
            if (!largest || arrival->counted > largest->counted) largest = std::move(arrival);
        }
    }
    const Refused full = cacheFull();
    if (!largest) throw full;
    largest->gave_way = true;
    largest->file->failed(full.reason(), full.what());
    leave(*largest);
    // Its writer notices with the next piece; the disk has the room now.
    if (::ftruncate(largest->out.get(), 0) != 0) throw full;
}

void FileCache::take(Arrival& arrival, std::string_view bytes) {
    {
        const MutexLock lock(mutex_);
        if (arrival.gave_way) throw cacheFull();
        // The arrival and on_the_way_ hold the last two references: no reader is left.
        constexpr long kNobody = 2;
        if (arrival.file.use_count() <= kNobody) {
            throw Refused(kBadGateway, "abandoned", "nobody waited for the file");
        }
        arriving_ += bytes.size();
        arriving_of_[arrival.tenant] += bytes.size();
        arrival.counted += bytes.size();
        while (arriving_ > max_bytes_) makeRoom(arrival);
    }
    if (!writeAll(arrival.out.get(), bytes)) {
        throw Refused(kBadGateway, "cache_full", "the mirror's disk is full");
    }
}

void FileCache::fetch(Arrival& arrival, const std::string& tenant) {
    {
        const MutexLock lock(mutex_);
        arrival.tenant = tenant;
    }
    const std::shared_ptr<CachedFile>& file = arrival.file;
    std::uint64_t size = 0;
    std::string reason;
    std::string message;
    try {
        RunningDigest digest(arrival.hash.algorithm == "sha512" ? RunningDigest::Kind::Sha512
                                                                : RunningDigest::Kind::Sha256);
        arrival.from({[&](std::optional<std::uint64_t> told) {
                          if (told && *told > max_bytes_) {
                              throw Refused(kBadGateway, "too_large",
                                            "the file is larger than the cache");
                          }
                          file->begun(told);
                      },
                      [&](std::string_view bytes) {
                          take(arrival, bytes);
                          digest.add(bytes);
                          size += bytes.size();
                          file->grew(bytes.size());
                          return true;
                      }});
        if (digest.hex() != arrival.hash.hex) {
            throw Refused(kBadGateway, "hash_mismatch",
                          "the file is not what the index says it is");
        }
        const MutexLock lock(mutex_);
        if (arrival.gave_way) throw cacheFull();
        if (::rename(arrival.partial.c_str(), pathOf(arrival.key).c_str()) != 0) {
            throw Refused(kBadGateway, "cache_broken", "the mirror's cache cannot be written to");
        }
        leave(arrival);
        add(arrival.key, size);
        evict();
        file->complete();
        return;
    } catch (const Refused& e) {
        reason = e.reason();
        message = e.what();
    } catch (const std::exception& e) {  // the fetching thread's top
        reason = "failed";
        message = "the file could not be fetched";
    }
    ::unlink(arrival.partial.c_str());
    {
        const MutexLock lock(mutex_);
        leave(arrival);
    }
    file->failed(std::move(reason), std::move(message));
}

}  // namespace hearth::egress
