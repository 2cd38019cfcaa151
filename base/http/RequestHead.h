#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/Url.h"

namespace hearth {

struct HeadLimits {
    std::size_t bytes = 16U << 10U;
    std::size_t line = 8U << 10U;
    std::size_t fields = 64;
};

/// Finds the end of a request head in bytes as they arrive; looks at each byte once.
class HeadScanner {
public:
    enum class Result { Incomplete, Complete, Bad };

    /// `bytes` starts at the head and holds at least the bytes of the last call.
    Result scan(std::string_view bytes, const HeadLimits& limits);
    /// The length of the head with its empty line; valid once Complete.
    std::size_t end() const { return seen_; }
    void reset() { *this = {}; }

private:
    std::size_t seen_ = 0;
    std::size_t line_at_ = 0;
    bool first_line_ = true;
};

/// A parsed request head. Strict: a head that two parsers could read in two ways is refused, so
/// that no proxy before the server can be made to disagree with it. Holds views into its own bytes.
class RequestHead {
public:
    struct Field {
        std::string_view name;
        std::string_view value;
    };

    RequestHead() = default;
    RequestHead(const RequestHead&) = delete;
    RequestHead& operator=(const RequestHead&) = delete;

    /// The forms of a request target (RFC 9112 section 3.2).
    enum class Targets {
        Paths,    ///< "/path": for a server
        Proxied,  ///< also "http://host/path" and, with CONNECT, "host:port": for a proxy
    };

    /// Takes a whole head. Returns the fault in it, or nullptr.
    const char* parse(std::string_view bytes, const HeadLimits& limits,
                      Targets targets = Targets::Paths);

    const Field* find(std::string_view name) const;
    std::size_t count(std::string_view name) const;

    std::string method;
    std::string authority;  ///< "host" or "host:port" of a proxied target, as it was written
    std::string raw_path;   ///< empty with CONNECT
    std::string path;
    QueryParams query;
    std::string host;  ///< the Host header's, without the port, lower case; CONNECT may lack it
    std::vector<Field> fields;
    bool http11 = true;
    bool keep_alive = true;
    bool chunked = false;
    bool expect_continue = false;
    bool expect_other = false;
    std::uint64_t content_length = 0;
    /// "path?query" as it was written, for forwarding the request.
    std::string target;

private:
    const char* parseLine(std::string_view line, Targets targets);
    const char* parseTarget(std::string_view text, Targets targets);
    const char* parseField(std::string_view line);
    const char* parseFraming();
    void parseConnection();

    std::string bytes_;
};

/// The host of "host", "host:port", "[v6]" or "[v6]:port" in lower case; nullopt if malformed.
std::optional<std::string> hostOf(std::string_view authority);

/// True if there is a character and each may stand in a method or a header name.
bool isToken(std::string_view text) noexcept;

}  // namespace hearth
