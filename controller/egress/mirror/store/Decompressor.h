#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace hearth::broker {

/// Unpacks a stream that a stranger made, in pieces, within bounds. Not thread-safe.
class Decompressor {
public:
    using Sink = std::function<void(std::string_view)>;

    /// Chosen by the file's name: .gz, .xz, or neither. `most` bounds the output; more is Refused,
    /// and so is a file that needs more than 96 MiB of memory to unpack.
    static std::unique_ptr<Decompressor> forName(std::string_view name, std::uint64_t most,
                                                 Sink sink);
    /// Whether the name's ending is one of these.
    static bool knows(std::string_view name);

    virtual ~Decompressor() = default;
    /// Throws Refused if it is not what its name says.
    virtual void add(std::string_view packed) = 0;
    /// Throws Refused if the stream is not at its end.
    virtual void finish() = 0;
};

}  // namespace hearth::broker
