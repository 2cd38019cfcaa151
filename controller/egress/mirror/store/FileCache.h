#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::egress {

/// The required hash of a file's bytes: "sha256" or "sha512" and lower-case hex.
struct ContentHash {
    std::string algorithm;
    std::string hex;

    /// The name of the cached file; empty if the hash cannot be checked.
    std::string key() const;
};

/// A file of the cache, possibly still being fetched. Thread-safe.
class CachedFile {
public:
    /// A complete file on disk.
    CachedFile(Fd fd, std::uint64_t size);
    /// A file that another descriptor of this process is still writing; `fd` reads it.
    explicit CachedFile(Fd fd);

    /// Blocks until there are bytes at `offset`, or the end; 0 at the end. The last bytes are held
    /// back until the file is verified, so a reader that reaches the end has read verified content.
    /// Throws Refused if the file cannot be fetched.
    std::size_t read(std::uint64_t offset, char* into, std::size_t room);
    /// Blocks until the size is known; nullopt if only the end shows it. Throws Refused.
    std::optional<std::uint64_t> size();
    /// Blocks until all of it is verified; its size. Throws Refused if it cannot be fetched.
    std::uint64_t whole();

    // Called by the fetching thread.
    void begun(std::optional<std::uint64_t> size);
    void grew(std::uint64_t bytes);
    void complete();
    void failed(std::string reason, std::string message);

private:
    const Fd fd_;
    Mutex mutex_;
    Condition changed_;
    std::optional<std::uint64_t> size_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t written_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool begun_ HEARTH_GUARDED_BY(mutex_) = false;
    bool complete_ HEARTH_GUARDED_BY(mutex_) = false;
    std::string reason_ HEARTH_GUARDED_BY(mutex_);  // why it failed
    std::string message_ HEARTH_GUARDED_BY(mutex_);
};

/// Files of package indexes, keyed by the hash of their content, which is checked before the end of
/// a file is given out. Bounded: the least recently used files are removed. Concurrent requests for
/// one file share one fetch, at the first turn of any of their tenants. If arriving files need more
/// room than there is, the tenant with most of it loses one. Survives a restart. Thread-safe.
class FileCache {
public:
    /// Fetches into the sink: `begun` with the size if it is known, then the bytes. Runs in the
    /// thread of `Run`; throws Refused, and does not catch the sink's exceptions.
    struct Sink {
        std::function<void(std::optional<std::uint64_t>)> begun;
        std::function<bool(std::string_view)> bytes;
    };
    using Fetch = std::function<void(const Sink&)>;
    /// Runs a task of a tenant in another thread; false if it cannot.
    using Run = std::function<bool(const std::string& tenant, std::function<void()>)>;

    /// `directory` is created if missing; half-written files in it are removed.
    FileCache(std::string directory, std::uint64_t max_bytes, Run run);

    struct Found {
        std::shared_ptr<CachedFile> file;
        bool hit = false;  ///< no request to the index was needed
    };
    /// Opens a file for a tenant; empty: for all. Calls `fetch` at most once for all callers.
    Found open(const ContentHash& hash, const std::string& tenant, const Fetch& fetch);
    /// The size of a file on disk.
    std::optional<std::uint64_t> sizeOf(const ContentHash& hash) const;

    /// The bytes on disk and in arriving files.
    std::uint64_t bytes() const;

private:
    struct Entry {
        std::uint64_t size = 0;
        std::list<std::string>::iterator used;
    };

    class Arrival;
    struct OnTheWay {
        std::shared_ptr<CachedFile> file;
        std::weak_ptr<Arrival> arrival;
        std::set<std::string> tenants;  ///< any of their turns may start the fetch
    };

    std::string pathOf(const std::string& key) const;
    std::shared_ptr<CachedFile> openStored(const std::string& key) HEARTH_REQUIRES(mutex_);
    std::shared_ptr<Arrival> arriving(const ContentHash& hash, const Fetch& from)
        HEARTH_REQUIRES(mutex_);
    bool run(const std::shared_ptr<Arrival>& arrival, const std::string& tenant);
    void fetch(Arrival& arrival, const std::string& tenant);
    void take(Arrival& arrival, std::string_view bytes);
    void makeRoom(const Arrival& writer) HEARTH_REQUIRES(mutex_);
    void leave(Arrival& arrival) HEARTH_REQUIRES(mutex_);
    void add(const std::string& key, std::uint64_t size) HEARTH_REQUIRES(mutex_);
    void evict() HEARTH_REQUIRES(mutex_);

    const std::string directory_;
    const std::uint64_t max_bytes_;
    const Run run_;
    mutable Mutex mutex_;
    std::map<std::string, Entry> stored_ HEARTH_GUARDED_BY(mutex_);
    std::list<std::string> by_use_ HEARTH_GUARDED_BY(mutex_);                     // oldest first
    std::map<std::string, OnTheWay> on_the_way_ HEARTH_GUARDED_BY(mutex_);        // by key
    std::map<std::string, std::uint64_t> arriving_of_ HEARTH_GUARDED_BY(mutex_);  // arriving_
    std::uint64_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t arriving_ HEARTH_GUARDED_BY(mutex_) = 0;  // bytes on their way
    std::uint64_t partials_ HEARTH_GUARDED_BY(mutex_) = 0;  // a counter
};

}  // namespace hearth::egress
