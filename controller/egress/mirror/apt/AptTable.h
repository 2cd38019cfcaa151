#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Digest.h"

namespace hearth::broker {

/// The packages of one index file ("Packages"): only the size and hash of each path, because an
/// archive has several hundred thousand. 56 bytes per package.
class AptTable {
public:
    struct Package {
        std::string sha256;  ///< lower-case hex
        std::uint64_t size = 0;
    };
    /// Finds a package by its path below the archive's root, as isAptPath() accepts it.
    std::optional<Package> find(std::string_view path) const;
    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

private:
    friend class AptTableReader;
    /// A prefix of the path's SHA-256, so a tenant cannot make two paths collide.
    using Key = std::array<std::uint8_t, 16>;
    struct Entry {
        Key key;
        Digest sha256;
        std::uint64_t size;
    };
    static Key keyOf(std::string_view path);

    std::vector<Entry> entries_;  // sorted by key
};

/// Reads an index file in pieces, as they arrive. Invalid and contradictory entries are dropped, so
/// nobody can fetch those packages. Not thread-safe.
class AptTableReader {
public:
    /// Throws Refused if the file has more packages than a table may hold.
    void add(std::string_view text);
    AptTable finish();

private:
    struct Field {
        std::string value;
        bool twice = false;
    };
    void endLine();
    void endPackage();

    AptTable table_;
    std::string line_;
    bool overlong_ = false;  ///< line_ has only the line's beginning
    bool said_ = false;      ///< the present package has a field
    Field filename_;
    Field sha256_;
    Field size_;
};

}  // namespace hearth::broker
