#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"

namespace hearth::egress {

/// One file of a project, as a simple repository describes it (PEP 503, 592, 658, 691, 700).
struct PypiFile {
    std::string filename;
    std::string url;     ///< absolute, without its fragment
    std::string sha256;  ///< lower-case hex; empty if the index has none
    std::string requires_python;
    std::optional<std::string> yanked;  ///< the reason, maybe empty; nullopt: not yanked
    std::optional<std::string>
        metadata_sha256;  ///< of its metadata file, if that has a hash to check
    std::optional<std::uint64_t> size;
    std::string upload_time;  ///< empty if the index does not say
};

/// The page of one project.
struct PypiProject {
    std::string name;
    std::vector<PypiFile> files;

    const PypiFile* find(std::string_view filename) const;
};

/// Normalises "Foo.Bar_baz" to "foo-bar-baz" (PEP 503); nullopt if it is no project's name.
std::optional<std::string> normalisedProject(std::string_view name);

/// Reads a project's page, JSON or HTML. `base` is its URL. Throws Refused if it is neither;
/// invalid files are left out.
PypiProject parsePypi(const std::string& name, const std::string& base,
                      std::string_view content_type, const std::string& body);

/// The page for clients, with the mirror's own addresses: `<files>/<project>/<filename>`.
std::string pypiHtml(const PypiProject& project, const std::string& files);
std::string pypiJson(const PypiProject& project, const std::string& files);

}  // namespace hearth::egress
