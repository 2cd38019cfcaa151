#pragma once

#include <string>
#include <string_view>

#include "base/http/RequestHead.h"

namespace hearth::broker {

/// Whether a proxy keeps this field to itself (RFC 9110 section 7.6.1), or writes its own.
bool isHopByHop(std::string_view name) noexcept;
/// Whether to forward this field: not one of those, and not named by the request's Connection.
bool isForwarded(const RequestHead& head, std::string_view name);
/// The head as the destination gets it: one request, one connection.
std::string forwardedHead(const RequestHead& head);

}  // namespace hearth::broker
