#pragma once

namespace hearth {

/// The version of the server, its commands and the program in its sandboxes: they are one release.
inline constexpr char kHearthVersion[] = "0.1.0";

}  // namespace hearth
