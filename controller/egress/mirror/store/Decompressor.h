#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace hearth::broker {

/// Unpacks an untrusted stream in pieces, within bounds. Not thread-safe.
class Decompressor {
public:
    using Sink = std::function<void(std::string_view)>;

    /// Chooses by the file's name: .gz, .xz, or neither. `most` bounds the output. Throws Refused
    /// for more output, or for a file that needs more than 96 MiB of memory to unpack.
    static std::unique_ptr<Decompressor> forName(std::string_view name, std::uint64_t most,
                                                 Sink sink);
    /// True if the name has one of these endings, or none.
    static bool knows(std::string_view name);

    virtual ~Decompressor() = default;
    /// Throws Refused if the data does not match the name's ending.
    virtual void add(std::string_view packed) = 0;
    /// Throws Refused if the stream is incomplete.
    virtual void finish() = 0;
};

}  // namespace hearth::broker
