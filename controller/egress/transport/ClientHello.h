#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::egress {

/// The facts in a TLS client's first bytes.
struct ClientHello {
    enum class State { Incomplete, NotTls, Complete };
    State state = State::Incomplete;
    std::string server_name;  ///< in lower case; empty if it has none
};

/// The most bytes a hello may take: one record's worth is ample, post-quantum key shares included.
inline constexpr std::size_t kMaxClientHello = 16U << 10U;

/// Reads a ClientHello (RFC 8446 section 4.1.2) and its server_name (RFC 6066 section 3) from the
/// first bytes of a connection, over any number of records. A malformed hello, or one longer than
/// kMaxClientHello, is NotTls.
ClientHello parseClientHello(std::string_view bytes);

}  // namespace hearth::egress
