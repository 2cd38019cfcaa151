#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

/// The file of the database on disk. Its creator holds the instance and has not opened the database
/// yet. A damaged file is set aside with its WAL (`.damaged-TIME`, the last three are kept), and a
/// new journal begins in an empty database (`.spare`), kept beside it because a full disk has no
/// room for one. Damage is logged as an error and counted.
class DatabaseFile {
public:
    /// `expected`: an instance ran here before, so a missing or empty file means a loss.
    DatabaseFile(std::string path, bool expected, metrics::Log& log, metrics::Metrics& metrics);

    const std::string& path() const { return path_; }
    /// The database will be a new one, so a missing record proves nothing.
    bool begunAnew() const { return begun_anew_; }
    /// Makes the spare database if there is none. A refusal by the disk is only logged.
    void keepSpare() const;
    /// Reports damage that an access has found. The file stays in use, because parts of it may be
    /// readable, and is checked completely at the next start. Thread-safe.
    void damaged(std::string_view what);

    /// Returns the first fault of a database, or nullopt. Reads all of it if `thorough`, else the
    /// tables that a start needs. Changes nothing except what opening the file changes.
    static std::optional<std::string> fault(const std::string& path, bool thorough);
    /// Names of the files that were set aside, oldest first, without their WALs.
    static std::vector<std::string> setAsideFiles(const std::string& path);
    /// The marker file for damage that an access has found.
    static std::string suspectPath(const std::string& path) { return path + ".suspect"; }

private:
    void setAside(const std::string& why);
    void dropOldest() const;

    const std::string path_;
    metrics::Log& log_;
    metrics::Metrics& metrics_;
    bool begun_anew_ = false;
    std::atomic<bool> told_{false};
};

}  // namespace hearth::controller
