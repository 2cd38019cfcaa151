#pragma once

#include <string>
#include <vector>

namespace hearth::controller {

/// The language that code is in: the one asked for, else python where the image has it, else the
/// image's first. Error(InvalidArgument) if the image (`known`) has it not.
std::string chooseLanguage(const std::string& asked, const std::vector<std::string>& known);

}  // namespace hearth::controller
