#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "controller/journal/ChangeFolder.h"
#include "controller/journal/Database.h"
#include "metrics/Log.h"

namespace hearth::controller {

/// The history that replicas share: each has a database of its own, and what the one that leads
/// commits goes through a log in a folder to those of the others, so that the next leader knows it.
/// Only the leader writes the log; a former leader that goes on writing is not read (ChangeFolder).
///
/// Where the log has grown long, a copy of the database takes its place.
class SharedHistory {
public:
    /// Makes the folder in one that is there, and throws Error(InvalidArgument) where it cannot be
    /// used. `leads`: false while another replica may lead; any thread. `grown`: so many bytes of
    /// log are too long.
    SharedHistory(const std::string& folder, std::string database, std::function<bool()> leads,
                  metrics::Log& log, std::uint64_t grown = 64ULL << 20U);
    ~SharedHistory() = default;
    SharedHistory(const SharedHistory&) = delete;
    SharedHistory& operator=(const SharedHistory&) = delete;

    /// The file of this replica's database.
    const std::string& database() const { return database_; }

    /// Brings a database to what the log has; in one that has gone another way (its last changes
    /// are void) everything shared is replaced. Not while anybody else writes to it. May end
    /// half-way when it is to stop.
    void catchUp(Database& database, const std::stop_token& stop = {});
    /// The database of this replica is what others follow from now on; it catches up first. Terms
    /// only grow.
    void lead(Database& database, std::uint64_t term);
    /// Before and after what a transaction of the leader does; committed() once it is committed.
    /// The next leader knows each committed change. Where the transaction ends otherwise others
    /// may know its changes nonetheless: so they are made by the next one. These throw
    /// Error(DiskFull) and Error(Unavailable). One thread at a time.
    void begin(Database& database);
    void append(Database& database, std::string changes);
    void committed() { unsettled_.clear(); }

private:
    /// These say false where a copy has taken the place of what they were about to read.
    bool catchUpOnce(Database& database, const std::stop_token& stop);
    bool replaceAll(Database& database, const ChangeSegment& snapshot);
    bool follow(Database& database, const ChangeFolder::Contents& there,
                const ChangeFolder::Lengths& before, const std::stop_token& stop);
    void beginSegment();
    void put(Database& database, const std::string& changes);
    void requireLead() const;
    /// False where another replica leads.
    bool copy(Database& database, const ChangeSegment& segment);
    /// The thread that makes the copies, which take long.
    void shorten(const std::stop_token& stop);

    ChangeFolder folder_;
    const std::string database_;
    const std::function<bool()> leads_;
    metrics::Log& log_;
    const std::uint64_t grown_;
    // Of the leader, used by whoever appends:
    ChangeSegment segment_;
    std::uint64_t since_copy_ = 0;
    std::vector<std::string> unsettled_;  ///< appended, perhaps, and not committed
    Mutex mutex_;
    StoppableCondition wanted_;
    /// A copy of what is before this segment is to be made.
    std::optional<ChangeSegment> due_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;  ///< once it leads
};

/// Keeps the database of a replica that does not lead close to the log, so that it has little to
/// read when it leads; until its end.
class HistoryFollower {
public:
    HistoryFollower(SharedHistory& history, metrics::Log& log);

private:
    void follow(const std::stop_token& stop);

    SharedHistory& history_;
    metrics::Log& log_;
    Mutex mutex_;
    StoppableCondition never_;
    std::jthread thread_;
};

}  // namespace hearth::controller
