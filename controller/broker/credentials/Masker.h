#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// Overwrites secrets with asterisks in bytes that pass by, however they are cut into pieces; the
/// length stays what it was. Each character of a secret may come as itself, as %HH, + for a blank,
/// \uHHHH, behind a backslash or as an entity of HTML, and its letters in either case: a server
/// gives back what it was sent in any mixture of these. How much is held back depends on nothing
/// but how long the longest secret is and how long the bytes have been printable: whoever sees the
/// pieces learns nothing from them of what a secret begins with. Not thread-safe.
class Masker {
public:
    /// Printable ASCII, none of them empty.
    explicit Masker(const std::vector<std::string>& hidden);

    /// What may go on now. An end that could be within a secret is kept for the next call; the end
    /// of a line never is.
    std::string pass(std::string_view bytes) { return take(bytes, false); }
    /// What was kept, when no more comes.
    std::string rest() { return take({}, true); }

private:
    /// One character as it may be written at a place; places may have several.
    struct Spelling {
        std::size_t begin = 0;
        std::size_t end = 0;
        unsigned char character = 0;
    };
    /// At most 64 characters of a secret, as a machine whose states are the bits of a word. What
    /// of a longer secret is looked for is each of its parts, so that time and memory have a bound.
    struct Part {
        std::array<std::uint64_t, 128> places{};  ///< of each character
        std::uint64_t last = 0;                   ///< the place of its end
    };

    std::string take(std::string_view bytes, bool last);
    void add(std::string_view part);
    static std::vector<Spelling> spellingsIn(std::string_view text);
    static void mask(const Part& part, const std::vector<Spelling>& spellings, std::string& out);

    std::vector<Part> parts_;
    std::size_t longest_ = 0;  ///< bytes that one may take, as it is written at most
    std::string kept_;         ///< as it came
    std::string masked_;       ///< the same, with what is known of it overwritten
};

}  // namespace hearth::broker
