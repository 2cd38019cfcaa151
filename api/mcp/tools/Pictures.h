#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "controller/contract/Executions.h"

namespace hearth::mcp {

/// A picture in the form that a client gets.
struct Picture {
    std::string type;
    std::string base64;
};

/// The PNG and JPEG pictures that an execution showed.
struct ShownPictures {
    std::map<std::size_t, Picture> of_result;  ///< by the result's number
    std::map<std::string, int> left_out;       ///< by type: other types, or no room
};

/// Returns at most kImagesCap pictures that together have at most `room` bytes of base64. Drivers
/// send large figures in two sizes; if the larger ones do not all fit, each result's smaller one is
/// used.
ShownPictures picturesOf(const controller::ExecutionView& view, std::size_t room);

}  // namespace hearth::mcp
