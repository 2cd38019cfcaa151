#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth::egress {

/// A kind of package index that the server can mirror.
enum class IndexKind : std::uint8_t { Pypi, Npm };
inline constexpr Texts<IndexKind, 2> kIndexKinds{{"pypi", "npm"}};

}  // namespace hearth::egress
