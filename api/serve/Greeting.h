#pragma once

#include <cstdint>
#include <string>

namespace hearth::program {

/// The commands after which an instance that had tokens and has none now serves again.
inline constexpr const char* kOpenAgain =
    "hearth token create --role admin --offline, then start the server again; or serve "
    "--open-loopback";

/// The facts for a server's greeting on its terminal when it begins to serve.
struct Greeting {
    enum class Access : std::uint8_t { Open, WithToken, Nobody };

    std::string url;         ///< for clients
    std::string operations;  ///< HOST:PORT
    std::string seed;        ///< its tools are at /mcp (--compat); empty: Hearth's own
    Access access = Access::Open;
    std::string missing_pool;  ///< the default pool, if it is not declared
    bool any_pool = true;      ///< true: one is declared

    /// Returns addresses and a first command, in lines. Each command works unchanged with any
    /// PATH.
    std::string text() const;

private:
    std::string firstStep(const std::string& program, const std::string& there) const;
};

}  // namespace hearth::program
