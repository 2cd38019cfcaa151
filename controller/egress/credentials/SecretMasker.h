#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/egress/credentials/Spelling.h"

namespace hearth::broker {

/// Overwrites secrets with asterisks in bytes that pass by, however they are cut into pieces; the
/// length stays what it was. Each character of a secret may come in any Spelling, its letters in
/// either case, with a break after any of them: a server gives back what it was sent in any mixture
/// of these. How much is held back depends on nothing but how long the longest secret is, and
/// where lines and other bytes end: a client learns nothing from the pieces of what a secret
/// begins with. Time is linear, memory bounded. Not thread-safe.
class SecretMasker {
public:
    /// Printable ASCII, none of them empty.
    explicit SecretMasker(const std::vector<std::string>& hidden);

    /// The text that may be sent now. An end that could be the beginning of a secret is kept for
    /// the next call, but never an empty line or anything before it.
    std::string pass(std::string_view bytes);
    /// For a pause of the sender: returns the kept text, if it ends with a line. A secret that is
    /// cut just there is overwritten nevertheless.
    std::string pause();
    /// The kept text, when no more comes.
    std::string rest() { return release(came_.size()); }

private:
    /// Places that can be asked for again; more than the longest spelling has.
    static constexpr std::size_t kPlaces = 32;
    /// At most 64 characters of a secret, matched by a machine whose states are the bits of a word.
    /// A longer secret is matched part by part, so that time and memory are bounded.
    struct Part {
        std::array<std::uint64_t, 128> places{};  ///< of each character
        std::uint64_t last = 0;                   ///< the place of its end
        /// Bit k: up to this place came the first k + 1 characters, by any way of reading.
        std::array<std::uint64_t, kPlaces> come{};

        bool step(const std::vector<Spelling>& spellings, std::size_t end);
    };

    void add(std::string_view part);
    void overwrite(const Part& part, const std::vector<Spelling>& spellings);
    std::size_t held() const;
    std::string release(std::size_t until);

    std::vector<Part> parts_;
    std::size_t longest_ = 0;   ///< bytes that one part may take, as it is written at most
    std::string came_;          ///< as it came: some that has gone on, and what is kept
    std::string masked_;        ///< the same, with its matched part overwritten
    std::size_t gone_ = 0;      ///< so much of both has gone on
    bool from_start_ = true;    ///< nothing came before them
    std::vector<Spelling> at_;  ///< reused
};

}  // namespace hearth::broker
