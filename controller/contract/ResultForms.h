#pragma once

#include "controller/contract/RichResults.h"

namespace hearth::controller {

/// Parses a result's document anew: `main`; `mime`; and `leftOut` if it has forms that do not fit:
/// a list of their `type` and the `reason`. Untrusted.
Json documentOf(const Result& result);

/// Like readResult(), with at most `most` JSON values. A form that does not fit (not of the kind
/// that its type needs, too large, too deep) is left out with its reason, and the others stay.
ResultPtr readResult(std::string_view document, std::uint64_t behind, std::size_t most);

}  // namespace hearth::controller
