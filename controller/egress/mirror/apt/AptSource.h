#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// The next word of a line of apt's files, which is taken off it; empty at its end.
std::string_view takeWord(std::string_view& line);

/// One suite of an archive of Debian packages, as the operator writes it: a line of sources.list
/// with or without its "deb".
struct AptSource {
    std::string url;  ///< of the archive's root, with a slash at its end
    std::string suite;
    std::vector<std::string> components;
    /// In the image: the keyring that apt checks the archive's signature with.
    std::string keyring;
    /// Nobody said which keyring: where an image lacks the usual one, apt takes the operator's
    /// word.
    bool keyring_optional = false;
    /// apt checks no signature; keyring is empty.
    bool trusted = false;

    /// Reads "[signed-by=/FILE] URL SUITE COMPONENT…". Throws Error (InvalidArgument, with a hint).
    static AptSource parse(std::string_view line);
};

/// Reads all of them; a suite may be given once, since sandboxes know an archive by its suite.
/// Throws Error as above.
std::vector<AptSource> parseAptSources(const std::vector<std::string>& lines);

}  // namespace hearth::broker
