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
/// one directory, until an hour after their workspace's end, also across a restart.
///
/// A file counts as whole blocks. A workspace at its limit gets no more copies. If a tenant, or the
/// whole directory, is at its limit, copies of ended workspaces make room, the longest ended first:
/// the tenant's own, then copies of tenants that keep more than it does, beginning with the one
/// that keeps most. Copies of live workspaces are never removed.
///
/// Thread-safe. No lock is held during disk access.
class ArtifactStore {
public:
    struct Limits {
        std::uint64_t workspace = 64ULL << 20U;
        std::uint64_t tenant = 512ULL << 20U;
        std::uint64_t all = 2ULL << 30U;
        const DiskReserve* reserve = nullptr;  ///< nothing is kept while its disk space is low
    };

    /// Identifies a copy by its owner. `name` is `<execution>-<number>`.
    struct Name {
        std::string tenant;
        std::string workspace;
        std::string name;
    };

    /// One copy while it is made: removed again, with its room, unless finished. For one thread;
    /// must be destroyed before the store.
    class Copy {
    public:
        Copy(const Copy&) = delete;
        Copy& operator=(const Copy&) = delete;
        ~Copy();
        /// False with errno set. Takes at most the number of bytes given to begin().
        bool add(std::string_view bytes);
        /// Makes the complete copy visible. Throws std::system_error.
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
    /// copies of executions without a record, are removed: no link names them.
    ArtifactStore(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
                  const Clock& clock, Limits limits);
    ArtifactStore(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
                  const Clock& clock)
        : ArtifactStore(std::move(directory), table, journal, log, clock, Limits{}) {}

    /// Takes room for `bytes`, makes some if necessary; null if there is none. Throws
    /// std::system_error if the disk is full or refuses.
    std::unique_ptr<Copy> begin(const Name& which, std::uint64_t bytes);

    struct Kept {
        Fd fd;
        std::uint64_t size = 0;
    };
    /// Throws Error(Gone) if it is no longer kept.
    Kept open(const Name& which) const;
    bool has(const Name& which) const;
    /// Work of kind "artifacts": removes copies that were kept long enough, a slice at a time.
    ReconcileResult prune();
    /// How often the journal was asked for the end of a workspace.
    std::size_t asked() const { return asked_; }
    /// The bytes of all copies, in whole blocks.
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
    /// The time at which the workspace of these copies ended; none if it has not, or only just.
    std::optional<End> endOf(const std::string& place) const;
    void learnEnds(const std::vector<std::string>& places);
    /// Looks at the next slice of open places; false if it was the last one.
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
    std::string looked_ HEARTH_GUARDED_BY(mutex_);  // the last open place that was looked at
    mutable std::atomic<std::size_t> asked_{0};
};

}  // namespace hearth::controller
