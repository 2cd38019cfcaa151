#pragma once

#include <string>
#include <vector>

namespace hearth::controller {

/// Returns the language that code is in: the requested one, else python if the image has it, else
/// the image's first. Uses the image's (`known`) name for it if another common name was requested.
/// Error(InvalidArgument) if the image does not have it.
std::string chooseLanguage(const std::string& asked, const std::vector<std::string>& known);

}  // namespace hearth::controller
