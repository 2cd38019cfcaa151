#pragma once

#include <cstdint>
#include <string>

namespace hearth::program {

/// How an instance that had tokens and has none now serves again.
inline constexpr const char* kOpenAgain =
    "hearth token create --role admin --offline, then start the server again; or serve "
    "--open-loopback";

/// Facts for what a server says on its terminal once it serves.
struct Greeting {
    enum class Access : std::uint8_t { Open, WithToken, Nobody };

    std::string url;         ///< of clients
    std::string operations;  ///< HOST:PORT
    std::string seed;        ///< whose tools are at /mcp (--compat); empty: our own
    Access access = Access::Open;
    std::string missing_pool;  ///< the default pool, if it is not declared
    bool any_pool = true;      ///< one is declared

    /// Addresses and a first command, in lines. Each command works as it stands, whatever is on
    /// the PATH.
    std::string text() const;

private:
    std::string firstStep(const std::string& program, const std::string& there) const;
};

}  // namespace hearth::program
