#pragma once

namespace hearth {

/// Of the server, its commands and the program in its sandboxes, which are one release.
inline constexpr char kHearthVersion[] = "0.1.0";

}  // namespace hearth
