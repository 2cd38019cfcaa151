#pragma once

#include <Poco/Net/MediaType.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/http/Handler.h"

namespace hearth::api {

/// "http://host" as the client reaches this server; https with TLS, or if a proxy reports it; empty
/// if the client named no host.
std::string originOf(const Request& request);
/// The path as sent, for traces and logs; empty for a signed link, whose path gives a right.
std::string_view shownPath(const Request& request);
/// The media type of the body, in lower case and without parameters: "application/json".
std::string mediaTypeOf(const Request& request);
/// The types and ranges of the Accept header in order; weights are ignored.
std::vector<Poco::Net::MediaType> acceptedTypes(const Request& request);

}  // namespace hearth::api
