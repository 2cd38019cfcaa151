#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Digest.h"

namespace hearth::broker {

/// The packages of one index file ("Packages"): by the path of each its size and hash, and no more,
/// since an archive has some hundred thousand. 56 bytes a package.
class AptTable {
public:
    struct Package {
        std::string sha256;  ///< lower-case hex
        std::uint64_t size = 0;
    };
    /// By its path beneath the archive's root, as isAptPath() has it.
    std::optional<Package> find(std::string_view path) const;
    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

private:
    friend class AptTableReader;
    /// Of the path. Its digest: whoever asks cannot make two that meet.
    using Key = std::array<std::uint8_t, 16>;
    struct Entry {
        Key key;
        Digest sha256;
        std::uint64_t size;
    };
    static Key keyOf(std::string_view path);

    std::vector<Entry> entries_;  // sorted by key
};

/// Reads an index file in pieces, as they come. Invalid and contradictory entries are dropped:
/// nobody can fetch those packages. Not thread-safe.
class AptTableReader {
public:
    /// Throws Refused if there is more than a table holds.
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
    bool overlong_ = false;  ///< line_ is only its beginning
    bool said_ = false;      ///< the package has a field
    Field filename_;
    Field sha256_;
    Field size_;
};

}  // namespace hearth::broker
