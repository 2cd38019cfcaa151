#include "controller/journal/SharedHistory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/Error.h"
#include "base/ScopeExit.h"
#include "controller/journal/ChangeRecorder.h"

namespace hearth::controller {
namespace {

constexpr auto kFollowEvery = std::chrono::seconds(2);
/// How many bytes of a log are applied in one transaction.
constexpr std::uint64_t kBatch = 4U << 20U;
/// The tries of catchUp(), each after a copy has replaced files that were being read.
constexpr int kCatchUps = 5;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// The database's place in the log; nullopt: it has never followed one.
std::optional<ChangePlace> placeOf(Database& database) {
    Statement row(database, "SELECT term, segment, bytes FROM shared_place");
    if (!row.step()) return std::nullopt;
    return ChangePlace{
        {static_cast<std::uint64_t>(row.integer(0)), static_cast<std::uint32_t>(row.integer(1))},
        static_cast<std::uint64_t>(row.integer(2))};
}

void setPlace(Database& database, const ChangePlace& place) {
    Statement(database, "INSERT OR REPLACE INTO shared_place VALUES (1, ?, ?, ?)")
        .bind(static_cast<std::int64_t>(place.segment.term))
        .bind(static_cast<std::int64_t>(place.segment.number))
        .bind(static_cast<std::int64_t>(place.bytes))
        .run();
}

/// Escapes a path for SQLite's URIs (https://www.sqlite.org/uri.html).
std::string uriPath(const std::string& path) {
    std::string uri;
    for (const char c : path) {
        if (c == '%' || c == '?' || c == '#') {
            constexpr std::string_view kHexDigits = "0123456789ABCDEF";
            const auto byte = static_cast<unsigned char>(c);
            uri.append({'%', kHexDigits[byte >> 4U], kHexDigits[byte & 15U]});
        } else {
            uri += c;
        }
    }
    return uri;
}

template <typename F>
void inTransaction(Database& database, const F& work) {
    database.execute("BEGIN IMMEDIATE");
    try {
        work();
        database.execute("COMMIT");
    } catch (...) {
        database.rollBack();
        throw;
    }
}

/// Throws std::runtime_error if the attached copy has another schema.
void requireSchema(Database& database) {
    Statement row(database, "PRAGMA copied.user_version");
    row.step();
    if (row.integer(0) == kSchema) return;
    throw std::runtime_error("the shared history has schema " + std::to_string(row.integer(0)) +
                             ", and this Hearth reads only schema " + std::to_string(kSchema) +
                             ": give all replicas one version, or an empty folder");
}

/// The valid length of a segment: unlimited in the newest term.
std::uint64_t limitOf(const ChangeSegment& segment, std::uint64_t newest,
                      const ChangeFolder::Lengths& before) {
    if (segment.term == newest) return kNoLimit;
    const auto found = before.find(segment);
    return found == before.end() ? 0 : found->second;
}

}  // namespace

SharedHistory::SharedHistory(const std::string& folder, std::string database,
                             std::function<bool()> leads, metrics::Log& log, std::uint64_t grown)
    : folder_(folder),
      database_(std::move(database)),
      leads_(std::move(leads)),
      log_(log),
      grown_(grown) {
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    const bool usable = !error && ::access(folder.c_str(), R_OK | W_OK | X_OK) == 0;
    if (usable) return;
    throw Error(ErrorCode::InvalidArgument, "this server cannot write to " + folder)
        .hint("mount a volume there that all replicas share, writable for the server's user");
}

void SharedHistory::catchUp(Database& database, const std::stop_token& stop) {
    for (int tries = kCatchUps; tries-- > 0;) {
        if (catchUpOnce(database, stop)) return;
    }
    throw Error(ErrorCode::Unavailable, "the log of the shared history changes too fast");
}

bool SharedHistory::catchUpOnce(Database& database, const std::stop_token& stop) {
    const ChangeFolder::Contents there = folder_.list();
    if (there.terms.empty() || there.snapshots.empty()) return true;  // no replica has led yet
    const std::uint64_t newest = there.terms.back();
    const ChangeFolder::Lengths before = folder_.lengthsBefore(newest);
    const ChangeSegment copy = there.snapshots.back();
    const std::optional<ChangePlace> place = placeOf(database);
    const bool behind = !place || place->segment < copy;
    const bool apart = behind || place->bytes > limitOf(place->segment, newest, before);
    if (apart && !replaceAll(database, copy)) return false;
    return follow(database, there, before, stop);
}

bool SharedHistory::replaceAll(Database& database, const ChangeSegment& snapshot) {
    const std::string path = folder_.snapshotPath(snapshot);
    if (::access(path.c_str(), R_OK) != 0) return false;
    {
        // `immutable`: nothing is locked or written on the volume.
        Statement attach(database, "ATTACH ? AS copied");
        attach.bind("file:" + uriPath(path) + "?mode=ro&immutable=1").run();
    }
    const ScopeExit detach([&] {
        try {
            database.execute("DETACH copied");
        } catch (const std::exception& e) {
            log_.warn("history.copy_stays_open", {{"error", e.what()}});
        }
    });
    requireSchema(database);
    inTransaction(database, [&] {
        for (const std::string table : kSharedTables) {
            const std::string change = "DELETE FROM main." + table + "; INSERT INTO main." + table +
                                       " SELECT * FROM copied." + table;
            database.execute(change.c_str());
        }
        setPlace(database, {snapshot, 0});
    });
    log_.info("history.copied", {{"term", snapshot.term}, {"segment", snapshot.number}});
    return true;
}

bool SharedHistory::follow(Database& database, const ChangeFolder::Contents& there,
                           const ChangeFolder::Lengths& before, const std::stop_token& stop) {
    const std::uint64_t newest = there.terms.back();
    const ChangePlace place = placeOf(database).value();
    for (const ChangeSegment& segment : there.segments) {
        if (segment < place.segment || segment.term > newest) continue;
        ChangePlace at = segment == place.segment ? place : ChangePlace{segment, 0};
        const std::optional<std::uint64_t> size = folder_.sizeOf(segment);
        if (!size) return false;
        const std::uint64_t limit = std::min(limitOf(segment, newest, before), *size);
        bool gone = false;
        for (bool more = at.bytes < limit; more;) {
            if (stop.stop_requested()) return true;
            more = false;
            inTransaction(database, [&] {
                const std::uint64_t begin = at.bytes;
                const auto apply = [&](std::string_view record, const ChangePlace& behind) {
                    applyChanges(database, record);
                    at = behind;
                    more = at.bytes - begin >= kBatch;
                    return !more;
                };
                gone = !folder_.read(at, limit, apply);
                if (!gone) setPlace(database, at);
            });
            if (gone) return false;
        }
    }
    return true;
}

void SharedHistory::lead(Database& database, std::uint64_t term) {
    catchUp(database);
    const ChangeFolder::Contents there = folder_.list();
    ChangeFolder::Lengths lengths;  // the valid lengths
    if (!there.terms.empty()) {
        const std::uint64_t newest = there.terms.back();
        if (newest >= term) {
            throw Error(ErrorCode::Conflict,
                        "the shared volume has the history of a later term than this one's, " +
                            std::to_string(term))
                .hint("give each installation a volume of its own; a new Lease needs a new folder");
        }
        const ChangeFolder::Lengths before = folder_.lengthsBefore(newest);
        const std::optional<ChangePlace> place = placeOf(database);
        for (const ChangeSegment& segment : there.segments) {
            // The last segment counts as far as it was read; a former leader may still write there.
            if (!place || segment > place->segment) continue;
            lengths[segment] = segment == place->segment ? place->bytes
                               : segment.term == newest  ? folder_.sizeOf(segment).value_or(0)
                                                         : limitOf(segment, newest, before);
        }
    }
    folder_.begin(term, lengths);
    segment_ = {term, 1};
    inTransaction(database, [&] { setPlace(database, {segment_, 0}); });
    if (there.snapshots.empty() && !copy(database, segment_)) {
        throw Error(ErrorCode::Unavailable, "another replica may lead: the history has no base");
    }
    folder_.open(segment_);
    for (const auto& [segment, bytes] : lengths) since_copy_ += bytes;
    thread_ = std::jthread([this](const std::stop_token& stop) { shorten(stop); });
    log_.info("history.leads", {{"term", term}, {"segments", lengths.size()}});
}

void SharedHistory::begin(Database& database) {
    requireLead();
    for (const std::string& changes : unsettled_) {
        put(database, changes);
        applyChanges(database, changes);
    }
}

void SharedHistory::append(Database& database, std::string changes) {
    if (changes.empty()) return;
    if (changes.size() >
        ChangeFolder::kMostBytes) {  // no try can succeed, so none is kept for the next one
        throw std::length_error("a change of " + std::to_string(changes.size()) + " bytes");
    }
    unsettled_.push_back(std::move(changes));
    put(database, unsettled_.back());
}

void SharedHistory::requireLead() const {
    if (leads_()) return;
    throw Error(ErrorCode::Unavailable,
                "another replica may lead: nothing is written before the Lease is renewed")
        .retryAfter(kFollowEvery);
}

void SharedHistory::put(Database& database, const std::string& changes) {
    if (since_copy_ > grown_) {
        // All earlier appends are committed by now, or are appended again.
        beginSegment();
        since_copy_ = 0;
        const MutexLock lock(mutex_);
        due_ = segment_;
        wanted_.notifyAll();
    } else if (!folder_.isOpen()) {
        beginSegment();
    }
    const ChangePlace behind = folder_.append(changes);
    // The next leader reads after the last moment at which this one certainly led.
    requireLead();
    setPlace(database, behind);
    since_copy_ += changes.size();
}

void SharedHistory::beginSegment() {
    ++segment_.number;  // also after a failure: the file may exist
    folder_.open(segment_);
}

bool SharedHistory::copy(Database& database, const ChangeSegment& segment) {
    const std::string path = folder_.unfinishedPath(segment);
    const ScopeExit none_left([&] { ::unlink(path.c_str()); });
    ::unlink(path.c_str());
    Statement(database, "VACUUM INTO ?").bind(path).run();
    // A former leader's copy would contain void changes.
    const ChangeFolder::Contents there = folder_.list();
    if (!leads_() || there.terms.empty() || there.terms.back() != segment.term) return false;
    folder_.publish(segment);
    folder_.dropBefore(segment);
    return true;
}

void SharedHistory::shorten(const std::stop_token& stop) {
    while (true) {
        ChangeSegment segment;
        {
            const MutexLock lock(mutex_);
            wanted_.wait(mutex_, stop,
                         [this]() HEARTH_REQUIRES(mutex_) { return due_.has_value(); });
            if (stop.stop_requested()) return;
            segment = *std::exchange(due_, std::nullopt);
        }
        try {
            Database database(database_);
            if (!copy(database, segment)) continue;
            log_.info("history.shortened", {{"term", segment.term}, {"segment", segment.number}});
        } catch (const std::exception& e) {
            // The log is not shortened until it has grown by the same amount again.
            log_.warn("history.not_shortened", {{"error", e.what()}});
        }
    }
}

HistoryFollower::HistoryFollower(SharedHistory& history, metrics::Log& log)
    : history_(history),
      log_(log),
      thread_([this](const std::stop_token& stop) { follow(stop); }) {}

void HistoryFollower::follow(const std::stop_token& stop) {
    bool told = false;
    std::optional<Database> database;
    while (!stop.stop_requested()) {
        try {
            if (!database) database.emplace(history_.database());
            history_.catchUp(*database, stop);
            told = false;
        } catch (const std::exception& e) {
            database.reset();
            if (!std::exchange(told, true)) {
                log_.warn("history.not_followed", {{"error", e.what()}});
            }
        }
        const MutexLock lock(mutex_);
        never_.waitFor(mutex_, stop, kFollowEvery, [] { return false; });
    }
}

}  // namespace hearth::controller
