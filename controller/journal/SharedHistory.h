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

/// The history that replicas share. Each replica has its own database, and the leader's commits
/// reach the others' through a log in a folder, so the next leader knows them. Only the leader
/// writes the log; the later writes of a former leader are not read (ChangeFolder).
///
/// When the log has grown long, a copy of the database replaces it.
class SharedHistory {
public:
    /// Makes the folder inside an existing one; throws Error(InvalidArgument) if it cannot be used.
    /// `leads` returns false while another replica may lead; called from any thread. `grown`: the
    /// number of log bytes that is too long.
    SharedHistory(const std::string& folder, std::string database, std::function<bool()> leads,
                  metrics::Log& log, std::uint64_t grown = 64ULL << 20U);
    ~SharedHistory() = default;
    SharedHistory(const SharedHistory&) = delete;
    SharedHistory& operator=(const SharedHistory&) = delete;

    /// The file of this replica's database.
    const std::string& database() const { return database_; }

    /// Brings a database to the state of the log. If its last changes are void, all shared tables
    /// are replaced. Must not run while anybody else writes to the database. May end half-way when
    /// `stop` is requested.
    void catchUp(Database& database, const std::stop_token& stop = {});
    /// Makes this replica's database the one that others follow; it catches up first. Terms only
    /// grow.
    void lead(Database& database, std::uint64_t term);
    /// begin() and append() stand before and after the changes of a leader's transaction;
    /// committed() follows its commit. The next leader knows each committed change. If the
    /// transaction fails, others may know its changes, so the next one repeats them. Both throw
    /// Error(DiskFull) and Error(Unavailable). One thread at a time.
    void begin(Database& database);
    void append(Database& database, std::string changes);
    void committed() { unsettled_.clear(); }

private:
    /// These return false if a copy has replaced the files that they were about to read.
    bool catchUpOnce(Database& database, const std::stop_token& stop);
    bool replaceAll(Database& database, const ChangeSegment& snapshot);
    bool follow(Database& database, const ChangeFolder::Contents& there,
                const ChangeFolder::Lengths& before, const std::stop_token& stop);
    void beginSegment();
    void put(Database& database, const std::string& changes);
    void requireLead() const;
    /// False if another replica leads.
    bool copy(Database& database, const ChangeSegment& segment);
    /// Runs in the thread that makes the copies, which take long.
    void shorten(const std::stop_token& stop);

    ChangeFolder folder_;
    const std::string database_;
    const std::function<bool()> leads_;
    metrics::Log& log_;
    const std::uint64_t grown_;
    // State of the leader, used by the thread that appends:
    ChangeSegment segment_;
    std::uint64_t since_copy_ = 0;
    std::vector<std::string> unsettled_;  ///< perhaps appended, and not committed
    Mutex mutex_;
    StoppableCondition wanted_;
    /// The next copy to make has everything before this segment.
    std::optional<ChangeSegment> due_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;  ///< runs once this replica leads
};

/// Keeps a follower's database close to the log until the destructor, so that there is little to
/// read when the replica becomes the leader.
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
