#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"

namespace hearth::broker {

/// One file of a project, as a simple repository tells of it (PEP 503, 592, 658, 691, 700).
struct PypiFile {
    std::string filename;
    std::string url;     ///< absolute, without its fragment
    std::string sha256;  ///< lower-case hex; empty if the index tells none
    std::string requires_python;
    std::optional<std::string> yanked;  ///< the reason, maybe empty; none: not yanked
    std::optional<std::string>
        metadata_sha256;  ///< of its metadata file, if there is one that can be checked
    std::optional<std::uint64_t> size;
};

/// The page of one project.
struct PypiProject {
    std::string name;
    std::vector<PypiFile> files;

    const PypiFile* find(std::string_view filename) const;
};

/// "Foo.Bar_baz" is "foo-bar-baz" (PEP 503); nullopt if it is no project's name.
std::optional<std::string> normalisedProject(std::string_view name);

/// Reads a project's page, JSON or HTML. `base` is where it came from. Throws Refused if it is
/// neither; files that make no sense are left out.
PypiProject parsePypi(const std::string& name, const std::string& base,
                      std::string_view content_type, const std::string& body);

/// The page as clients get it: with the mirror's own addresses, `<files>/<project>/<filename>`.
std::string pypiHtml(const PypiProject& project, const std::string& files);
std::string pypiJson(const PypiProject& project, const std::string& files);

}  // namespace hearth::broker
