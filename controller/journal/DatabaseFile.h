#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

/// The file of the database as it lies on disk. Its maker holds the instance and has not opened the
/// database yet. A damaged file is set aside with its WAL (`.damaged-TIME`, the last three are
/// kept), and the journal begins a new one: an empty database that lies ready beside it (`.spare`),
/// as a full disk has no room for another. Damage is logged as an error and counted.
class DatabaseFile {
public:
    /// `expected`: an instance was here before, so a file that is missing or empty was lost.
    DatabaseFile(std::string path, bool expected, metrics::Log& log, metrics::Metrics& metrics);

    const std::string& path() const { return path_; }
    /// The database will be a new one: what it does not hold says nothing.
    bool begunAnew() const { return begun_anew_; }
    /// Makes the spare database if there is none. A disk that refuses it is only logged.
    void keepSpare() const;
    /// An access found damage. The file stays in use and is checked whole at the next start: what
    /// can still be read serves until then. Thread-safe.
    void damaged(std::string_view what);

    /// The first fault of a database; nullopt for a whole one. All of it is read if `thorough`,
    /// else what a start needs. Changes nothing but what opening does.
    static std::optional<std::string> fault(const std::string& path, bool thorough);
    /// Names of the files that were set aside, oldest first, without those of their WALs.
    static std::vector<std::string> setAsideFiles(const std::string& path);
    /// The file that stands for damage found by an access.
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
