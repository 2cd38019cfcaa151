#pragma once

#include <string>
#include <vector>

namespace hearth::controller {

/// The language that code is in: the one asked for, else python where the image has it, else the
/// image's first; as the image (`known`) names it, if it was asked for by another common name.
/// Error(InvalidArgument) if the image has it not.
std::string chooseLanguage(const std::string& asked, const std::vector<std::string>& known);

}  // namespace hearth::controller
