#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pool/gpu/cdi/CdiEdits.h"

namespace hearth::pool::cdi {

/// The content of one file of the Container Device Interface.
struct CdiDocument {
    std::string kind;  ///< "vendor/class"
    CdiEdits edits;    ///< for each of its devices
    std::map<std::string, CdiEdits> devices;
};

/// The format of a file; its name decides.
enum class CdiFormat : std::uint8_t { Json, Yaml };

/// Reads a file's text by CDI 1.1.0: unknown fields, a version that does not know the fields used,
/// names and paths that break a rule are errors. Throws Error(InvalidArgument) that begins with the
/// field's JSON pointer, or with the place in the text. Pure.
CdiDocument parseCdi(const std::string& text, CdiFormat format);

}  // namespace hearth::pool::cdi
