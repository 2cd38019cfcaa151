#pragma once

#include <string>
#include <string_view>

#include "base/http/RequestHead.h"

namespace hearth::egress {

/// True if a proxy does not forward this field (RFC 9110 section 7.6.1), or writes its own.
bool isHopByHop(std::string_view name) noexcept;
/// True unless the field is hop-by-hop or the request's Connection field names it.
bool isForwarded(const RequestHead& head, std::string_view name);
/// The head that is sent to the destination: one request, one connection.
std::string forwardedHead(const RequestHead& head);

}  // namespace hearth::egress
