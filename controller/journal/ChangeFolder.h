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

/// A piece of the log of changes: the leader of each term begins pieces of its own.
struct ChangeSegment {
    std::uint64_t term = 0;
    std::uint32_t number = 0;

    friend bool operator==(const ChangeSegment&, const ChangeSegment&) = default;
    friend std::strong_ordering operator<=>(const ChangeSegment& a, const ChangeSegment& b) {
        return std::tie(a.term, a.number) <=> std::tie(b.term, b.number);
    }
};

/// A place in the log. Who is there has all that is before it.
struct ChangePlace {
    ChangeSegment segment;
    std::uint64_t bytes = 0;

    friend auto operator<=>(const ChangePlace&, const ChangePlace&) = default;
};

/// The files of the log of changes, in a folder that all replicas see, on a network file system
/// perhaps: nothing but whole files that appear by a rename, and files that one writer appends to.
///
///     term-T            begins the term T. JSON: {"segments": {"T-N": bytes}}, what counts of the
///                       terms before. What a former leader appends later is void.
///     changes-T-N       records: length and CRC-32 of a patchset (4 bytes each, little endian),
///                       and the patchset
///     snapshot-T-N      a database that has all that is before the segment N of T
///
/// Not thread-safe; different objects and processes may use one folder. Throws Error(DiskFull) and
/// Error(Unavailable).
class ChangeFolder {
public:
    explicit ChangeFolder(std::string path) : path_(std::move(path)) {}

    /// Above any transaction: a longer record is none.
    static constexpr std::uint32_t kMostBytes = 1U << 30U;

    struct Contents {
        // All in order.
        std::vector<std::uint64_t> terms;
        std::vector<ChangeSegment> segments;
        std::vector<ChangeSegment> snapshots;
    };
    Contents list() const;

    using Lengths = std::map<ChangeSegment, std::uint64_t>;
    /// The parts of the segments before that term that count.
    Lengths lengthsBefore(std::uint64_t term) const;
    /// Throws where the term has begun already.
    void begin(std::uint64_t term, const Lengths& before) const;

    /// Nullopt: it has gone, as a copy has taken its place.
    std::optional<std::uint64_t> sizeOf(const ChangeSegment& segment) const;
    /// Takes a record and the place behind it; false: no more.
    using Each = std::function<bool(std::string_view record, const ChangePlace& behind)>;
    /// Hands out the records from `from` on that end at or before `limit`, as far as they are
    /// whole. False: the segment has gone.
    bool read(const ChangePlace& from, std::uint64_t limit, const Each& each) const;
    /// Begins a segment of our own; append() goes to it.
    void open(const ChangeSegment& segment);
    /// Whether there is one that can be appended to.
    bool isOpen() const { return static_cast<bool>(file_); }
    /// At least one byte and at most kMostBytes. Returns once other machines can read it. Where it
    /// throws, others may have read it, and another segment is to be opened.
    ChangePlace append(std::string_view record);

    std::string snapshotPath(const ChangeSegment& segment) const;
    /// Where a snapshot is made before publish() gives it its name.
    std::string unfinishedPath(const ChangeSegment& segment) const;
    void publish(const ChangeSegment& segment) const;
    /// Removes what a snapshot has made needless. What is not to be removed stays.
    void dropBefore(const ChangeSegment& snapshot) const noexcept;

private:
    std::string at(const char* kind, const ChangeSegment& segment) const;
    void sync() const;

    const std::string path_;
    ChangeSegment segment_;  ///< that is appended to
    Fd file_;
    std::uint64_t bytes_ = 0;  ///< of it that count
};

}  // namespace hearth::controller
