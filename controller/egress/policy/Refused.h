#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hearth::egress {

/// HTTP statuses of refusals, and of answers that need their own handling.
inline constexpr int kNotModified = 304;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kTooMany = 429;
/// The status of an answer when the other side fails.
inline constexpr int kBadGateway = 502;

/// The reason why a destination is not reached: an HTTP status, a word for counters and logs, and a
/// sentence for the caller.
class Refused : public std::runtime_error {
public:
    Refused(int status, std::string reason, const std::string& message)
        : std::runtime_error(message), status_(status), reason_(std::move(reason)) {}
    int status() const noexcept { return status_; }
    const std::string& reason() const noexcept { return reason_; }

private:
    int status_;
    std::string reason_;
};

}  // namespace hearth::egress
