#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "controller/contract/Executions.h"

namespace hearth::mcp {

/// A picture as a client gets it.
struct Picture {
    std::string type;
    std::string base64;
};

/// What an execution showed as PNG or JPEG.
struct ShownPictures {
    std::map<std::size_t, Picture> of_result;  ///< by the result's number
    std::map<std::string, int> left_out;       ///< by type: of other types, or without room
};

/// At most kImagesCap pictures that together have at most `room` bytes of base64. A result that
/// comes in two sizes, as drivers send large figures, gives the smaller one where the larger ones
/// would not all fit.
ShownPictures picturesOf(const controller::ExecutionView& view, std::size_t room);

}  // namespace hearth::mcp
