#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/Fd.h"

namespace hearth::controller {

/// A segment of the log of changes: each term's leader begins its own segments.
struct ChangeSegment {
    std::uint64_t term = 0;
    std::uint32_t number = 0;

    friend bool operator==(const ChangeSegment&, const ChangeSegment&) = default;
    friend std::strong_ordering operator<=>(const ChangeSegment& a, const ChangeSegment& b) {
        return std::tie(a.term, a.number) <=> std::tie(b.term, b.number);
    }
};

/// A place in the log. A database at this place has all changes before it.
struct ChangePlace {
    ChangeSegment segment;
    std::uint64_t bytes = 0;

    friend auto operator<=>(const ChangePlace&, const ChangePlace&) = default;
};

/// The files of the log of changes, in a folder that all replicas share, perhaps on a network file
/// system. It uses only whole files that appear by a rename, and files that one writer appends to.
///
///     term-T            begins the term T. JSON: {"segments": {"T-N": bytes}}, the valid lengths
///                       of earlier segments. Later writes of a former leader are void.
///     changes-T-N       records: length and CRC-32 of a patchset (4 bytes each, little endian),
///                       and the patchset
///     snapshot-T-N      a database with all changes before segment N of term T
///
/// Not thread-safe; different objects and processes may use one folder. Throws Error(DiskFull) and
/// Error(Unavailable).
class ChangeFolder {
public:
    explicit ChangeFolder(std::string path) : path_(std::move(path)) {}

    /// Larger than any transaction; a record with a greater length is invalid.
    static constexpr std::uint32_t kMostBytes = 1U << 30U;

    struct Contents {
        // Each in ascending order.
        std::vector<std::uint64_t> terms;
        std::vector<ChangeSegment> segments;
        std::vector<ChangeSegment> snapshots;
    };
    Contents list() const;

    using Lengths = std::map<ChangeSegment, std::uint64_t>;
    /// Returns the valid length of each segment before that term.
    Lengths lengthsBefore(std::uint64_t term) const;
    /// Throws if the term has already begun.
    void begin(std::uint64_t term, const Lengths& before) const;

    /// Nullopt: the segment was removed, because a snapshot has replaced it.
    std::optional<std::uint64_t> sizeOf(const ChangeSegment& segment) const;
    /// Called with a record and the place after it; returns false to stop.
    using Each = std::function<bool(std::string_view record, const ChangePlace& behind)>;
    /// Passes on the complete records from `from` that end at or before `limit`. False: the segment
    /// was removed.
    bool read(const ChangePlace& from, std::uint64_t limit, const Each& each) const;
    /// Begins a segment of this process; append() writes to it.
    void open(const ChangeSegment& segment);
    /// True if a segment is open for append().
    bool isOpen() const { return static_cast<bool>(file_); }
    /// Appends at least one byte and at most kMostBytes. Returns once other machines can read it.
    /// If it throws, others may have read the record, and another segment must be opened.
    ChangePlace append(std::string_view record);

    std::string snapshotPath(const ChangeSegment& segment) const;
    /// The path of a snapshot while it is made; publish() renames it.
    std::string unfinishedPath(const ChangeSegment& segment) const;
    void publish(const ChangeSegment& segment) const;
    /// Removes files that a snapshot has replaced. Ignores files that cannot be removed.
    void dropBefore(const ChangeSegment& snapshot) const noexcept;

private:
    std::string at(const char* kind, const ChangeSegment& segment) const;
    void sync() const;

    const std::string path_;
    ChangeSegment segment_;  ///< the segment that append() writes to
    Fd file_;
    std::uint64_t bytes_ = 0;  ///< its valid bytes
};

}  // namespace hearth::controller
