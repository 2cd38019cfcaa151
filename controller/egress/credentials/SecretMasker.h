#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/egress/credentials/Spelling.h"

namespace hearth::egress {

/// Overwrites secrets with asterisks in a byte stream, however it is cut into pieces; the length
/// does not change. Each character of a secret may come in any Spelling, in upper or lower case,
/// with a break after it, because a server may return its input in any mixture of these. The amount
/// held back depends only on the longest secret's length and on where lines and other bytes end, so
/// the pieces tell a client nothing about how a secret begins. Time is linear, memory bounded. Not
/// thread-safe.
class SecretMasker {
public:
    /// `hidden`: printable ASCII, none of them empty.
    explicit SecretMasker(const std::vector<std::string>& hidden);

    /// Returns the text that may be sent now. An end that could begin a secret is kept for the next
    /// call, but never an empty line or anything before it.
    std::string pass(std::string_view bytes);
    /// For a pause of the sender: returns the kept text if it ends with a line. A secret that is
    /// cut exactly there is still overwritten.
    std::string pause();
    /// Returns the kept text when no more bytes follow.
    std::string rest() { return release(came_.size()); }

private:
    /// How many places can be looked up again; more than the longest spelling has.
    static constexpr std::size_t kPlaces = 32;
    /// At most 64 characters of a secret, matched by a machine whose states are the bits of a word.
    /// A longer secret is matched part by part, so time and memory are bounded.
    struct Part {
        std::array<std::uint64_t, 128> places{};  ///< per character: its positions in the part
        std::uint64_t last = 0;                   ///< the bit of its last character
        /// Bit k of an entry: the first k + 1 characters end at this place, in some reading.
        std::array<std::uint64_t, kPlaces> come{};

        bool step(const std::vector<Spelling>& spellings, std::size_t end);
    };

    void add(std::string_view part);
    void overwrite(const Part& part, const std::vector<Spelling>& spellings);
    std::size_t held() const;
    std::string release(std::size_t until);

    std::vector<Part> parts_;
    std::size_t longest_ = 0;   ///< the most bytes that one part may take, in its longest spelling
    std::string came_;          ///< the input: some that was passed on, and the kept rest
    std::string masked_;        ///< the same, with matched parts overwritten
    std::size_t gone_ = 0;      ///< how many bytes of both were passed on
    bool from_start_ = true;    ///< both begin at the start of the stream
    std::vector<Spelling> at_;  ///< a buffer, reused
};

}  // namespace hearth::egress
