#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Mutex.h"
#include "controller/executions/KeptPlaces.h"
#include "controller/queue/ReconcileLoop.h"
#include "metrics/Log.h"

namespace hearth::controller {

class DiskReserve;
class Journal;
class WorkspaceTable;

/// The kept copies of artifacts: `<digest of the tenant>/<workspace>/<execution>-<number>` below
/// one directory, until an hour after their workspace's end, also over a restart.
///
/// A file counts as whole blocks. A workspace that has its fill gets no more. Where a tenant, or
/// the whole directory, has its fill, copies of workspaces that have ended make room, the longest
/// ended first: the tenant's own, then those of tenants who keep more than it does, of who keeps
/// most first. Copies of workspaces that live are never taken away.
///
/// Thread-safe. No lock is held while the disk is touched.
class ArtifactStore {
public:
    struct Limits {
        std::uint64_t workspace = 64ULL << 20U;
        std::uint64_t tenant = 512ULL << 20U;
        std::uint64_t all = 2ULL << 30U;
        const DiskReserve* reserve = nullptr;  ///< nothing is kept while the disk has no more
    };

    /// The owner of a copy. `name` is `<execution>-<number>`.
    struct Name {
        std::string tenant;
        std::string workspace;
        std::string name;
    };

    /// One copy while it is made: gone again, with its room, unless finished. To be used by one
    /// thread, and gone before the store.
    class Copy {
    public:
        Copy(const Copy&) = delete;
        Copy& operator=(const Copy&) = delete;
        ~Copy();
        /// False with errno. Takes at most the number of bytes given to begin().
        bool add(std::string_view bytes);
        /// Seen from now on, whole. Throws std::system_error.
        void finish();

    private:
        friend class ArtifactStore;
        Copy(ArtifactStore& store, std::string place, const std::string& name, std::uint64_t room);

        ArtifactStore& store_;
        const std::string place_;
        const std::string path_;
        const std::uint64_t room_;
        Fd fd_;
        bool finished_ = false;
    };

    /// `directory` is made if it is absent; existing copies are counted. Unfinished copies, and
    /// those of executions without a record, are removed: no link names them.
    ArtifactStore(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
                  const Clock& clock, Limits limits);
    ArtifactStore(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
                  const Clock& clock)
        : ArtifactStore(std::move(directory), table, journal, log, clock, Limits{}) {}

    /// Takes room for `bytes`, making some if need be; null if there is none. Throws
    /// std::system_error where the disk is full or refuses.
    std::unique_ptr<Copy> begin(const Name& which, std::uint64_t bytes);

    struct Kept {
        Fd fd;
        std::uint64_t size = 0;
    };
    /// Throws Error(Gone) if it is no longer kept.
    Kept open(const Name& which) const;
    bool has(const Name& which) const;
    /// Work of kind "artifacts": removes what has been kept long enough, a slice at a time.
    ReconcileResult prune();
    /// How often the journal was asked when a workspace has ended.
    std::size_t asked() const { return asked_; }
    /// Bytes of all copies, as they count.
    std::uint64_t kept() const;

private:
    enum class Room : std::uint8_t { Given, NoneHere, TenantFull, Full };

    std::string path(const Name& which) const;
    void sweep();
    void sweepPlace(const std::string& place);
    Room take(const std::string& place, std::uint64_t bytes);
    void giveBack(const std::string& place, std::uint64_t bytes);
    struct End {
        std::int64_t unix_ms = 0;
        bool final = false;
    };
    /// When the workspace of these copies ended; none: it has not, or has only just.
    std::optional<End> endOf(const std::string& place) const;
    void learnEnds(const std::vector<std::string>& places);
    /// Looks at the next slice of open places; false if that was the last.
    bool learnNextEnds();
    std::optional<std::string> toEvict(const std::string& owner, bool own_only);
    bool remove(const std::string& place);

    const std::string directory_;
    WorkspaceTable& table_;
    Journal& journal_;
    metrics::Log& log_;
    const Clock& clock_;
    const Limits limits_;
    mutable Mutex mutex_;
    KeptPlaces kept_ HEARTH_GUARDED_BY(mutex_);
    std::string looked_ HEARTH_GUARDED_BY(mutex_);  // the open place that was looked at last
    mutable std::atomic<std::size_t> asked_{0};
};

}  // namespace hearth::controller
