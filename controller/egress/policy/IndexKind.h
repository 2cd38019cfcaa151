#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth::broker {

/// A kind of package index that the server can mirror.
enum class IndexKind : std::uint8_t { Pypi, Npm, Apt };
inline constexpr Texts<IndexKind, 3> kIndexKinds{{"pypi", "npm", "apt"}};

}  // namespace hearth::broker
