#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/RequestHead.h"
#include "controller/egress/mirror/apt/AptRelease.h"
#include "controller/egress/mirror/apt/AptSource.h"
#include "controller/egress/mirror/apt/AptTable.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/mirror/store/IndexFiles.h"

namespace hearth::broker {

/// Archives of Debian packages as sandboxes see them, each suite as an archive of its own:
/// SUITE/dists/SUITE/… and SUITE/pool/…. The suite's Release is passed on unchanged, with its
/// signature; it lists the hashes of index files, and these list the hashes of packages. Files that
/// are not listed, or have another hash, are refused. Thread-safe; calls block for the archive.
class AptMirror {
public:
    /// Everything except `sources` outlives it.
    AptMirror(const std::vector<AptSource>& sources, Fetcher& fetcher, const IndexFiles& files,
              const Clock& clock);

    /// `path` is the part after "/apt/". Throws Refused.
    void answer(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer);
    /// Forgets tables that were unused for half an hour.
    void tidy();
    /// The size of all tables in memory, in bytes.
    std::size_t tableBytes() const;

private:
    /// A Release as the archive sent it, with its parsed entries.
    struct Release {
        std::shared_ptr<const std::string> in_release;  ///< InRelease, with its signature; or
        std::shared_ptr<const std::string> text;        ///< Release, without; and
        std::shared_ptr<const std::string> signature;   ///< Release.gpg, if there is one
        std::string etag;
        AptRelease index;
    };
    struct Suite {
        AptSource source;
        Mutex mutex;
        Condition asked;
        bool asking HEARTH_GUARDED_BY(mutex) = false;  // one request for all readers
        TimePoint fresh_until HEARTH_GUARDED_BY(mutex){};
        /// Null: not yet requested, or none.
        std::shared_ptr<const Release> release HEARTH_GUARDED_BY(mutex);
        std::shared_ptr<const Release> previous HEARTH_GUARDED_BY(mutex);  // its readers continue
        std::string failure HEARTH_GUARDED_BY(mutex);  // why it cannot be fetched
    };
    /// The packages of one index file, which is read once however many requests need it.
    struct Table {
        Mutex mutex;  // held while it is read
        std::shared_ptr<const AptTable> content HEARTH_GUARDED_BY(mutex);
        TimePoint failed_until HEARTH_GUARDED_BY(mutex){};
        std::string failure HEARTH_GUARDED_BY(mutex);
        std::atomic<std::size_t> bytes{0};
    };
    struct KnownTable {
        std::shared_ptr<Table> table;
        TimePoint used{};
    };
    struct Releases {
        std::shared_ptr<const Release> current;
        std::shared_ptr<const Release> previous;
    };

    Releases releases(Suite& suite);
    /// Returns `before` if the archive's Release is unchanged. Takes no lock.
    std::shared_ptr<const Release> fetch(const AptSource& source,
                                         const std::shared_ptr<const Release>& before);
    std::optional<std::string> text(const std::string& url, const std::string& etag,
                                    FetchAnswer& answer);
    void index(Suite& suite, const MirrorRequest& asked, std::string_view path,
               MirrorAnswer& answer);
    void package(Suite& suite, const MirrorRequest& asked, std::string_view path,
                 MirrorAnswer& answer);
    std::shared_ptr<const AptTable> table(const Suite& suite, const AptRelease& release,
                                          const std::string& path, const AptRelease::File& file);
    AptTable read(const Suite& suite, const AptRelease& release, const std::string& path,
                  const AptRelease::File& file);
    std::shared_ptr<Table> slot(const std::string& hash);
    void forget(std::size_t most_tables, std::size_t most_bytes) HEARTH_REQUIRES(tables_mutex_);

    Fetcher& fetcher_;
    const IndexFiles& files_;
    const Clock& clock_;
    std::map<std::string, std::unique_ptr<Suite>, std::less<>> suites_;  // fixed
    std::counting_semaphore<> readers_{2};  ///< how many index files are parsed at once
    mutable Mutex tables_mutex_;
    std::map<std::string, KnownTable> tables_ HEARTH_GUARDED_BY(tables_mutex_);  // by hash
};

}  // namespace hearth::broker
