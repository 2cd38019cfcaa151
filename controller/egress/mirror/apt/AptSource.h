#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// Takes the next word off a line of apt's files; empty at the line's end.
std::string_view takeWord(std::string_view& line);

/// One suite of an archive of Debian packages, in the operator's spelling: a line of sources.list
/// with or without its "deb".
struct AptSource {
    std::string url;  ///< the archive's root, with a slash at its end
    std::string suite;
    std::vector<std::string> components;
    /// The path in the image of the keyring that apt checks the archive's signature with.
    std::string keyring;
    /// True if the operator named no keyring and the URL is https: if the image lacks the usual
    /// keyring, apt trusts the archive without it.
    bool keyring_optional = false;
    /// apt checks no signature; keyring is empty.
    bool trusted = false;

    /// Reads "[signed-by=/FILE] URL SUITE COMPONENT…". Throws Error (InvalidArgument, with a hint).
    static AptSource parse(std::string_view line);
};

/// Reads all lines. A suite may be given only once, because its name identifies the archive in
/// sandboxes. Throws Error as above.
std::vector<AptSource> parseAptSources(const std::vector<std::string>& lines);

}  // namespace hearth::broker
