#pragma once

#include <string>
#include <string_view>

namespace hearth::cli {

/// A tar archive (ustar) of one regular file, mode 0644; the name has less than 100 characters.
std::string tarOf(std::string_view name, std::string_view bytes);
/// The bytes of an archive's first regular file. Throws Error(Internal) if there is none.
std::string firstFileOfTar(std::string_view archive);

}  // namespace hearth::cli
