#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// The kind of failure, as a client may see it (docs/rest.md). One HTTP status each.
enum class ErrorCode {
    InvalidArgument,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    IdempotencyInFlight,
    Gone,
    PreconditionFailed,
    PayloadTooLarge,
    IdempotencyMismatch,
    InvalidSpec,
    QuotaExceeded,
    RateLimited,
    PoolExhausted,
    Internal,
    Unsupported,
    SandboxLost,
    PoolDegraded,
    Unavailable,
    Deadline,
    DiskFull,
};

/// One faulty place in a request: a JSON pointer ("/files/0/path") and the fault.
struct FieldError {
    std::string pointer;
    std::string reason;
};

/// A failure that a client may see as it is: `what()` never holds a host path, a secret or a
/// runtime's stderr. Anything else is thrown as another exception and answered as Internal.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

    /// One sentence that tells the caller what to do.
    Error& hint(std::string text) {
        hint_ = std::move(text);
        return *this;
    }
    Error& retryAfter(std::chrono::seconds delay) {
        retry_after_ = delay;
        return *this;
    }
    /// Waiting alone does not help: the answer has no Retry-After, even if its code usually has it.
    Error& unlessMended() {
        passes_ = false;
        return *this;
    }
    Error& field(std::string pointer, std::string reason) {
        fields_.push_back({std::move(pointer), std::move(reason)});
        return *this;
    }
    /// Why and when (RFC 3339) the resource ended; only with Gone.
    Error& ended(std::string reason, std::string at) {
        ended_reason_ = std::move(reason);
        ended_at_ = std::move(at);
        return *this;
    }

    ErrorCode code() const noexcept { return code_; }
    const std::string& hint() const noexcept { return hint_; }
    std::optional<std::chrono::seconds> retryAfter() const noexcept { return retry_after_; }
    /// False after unlessMended().
    bool passes() const noexcept { return passes_; }
    const std::vector<FieldError>& fields() const noexcept { return fields_; }
    const std::string& endedReason() const noexcept { return ended_reason_; }
    const std::string& endedAt() const noexcept { return ended_at_; }

private:
    ErrorCode code_;
    std::string hint_;
    std::optional<std::chrono::seconds> retry_after_;
    bool passes_ = true;
    std::vector<FieldError> fields_;
    std::string ended_reason_;
    std::string ended_at_;
};

/// The wire name, e.g. "POOL_EXHAUSTED".
std::string_view errorCodeName(ErrorCode code) noexcept;
/// The HTTP status, e.g. 429.
int errorCodeStatus(ErrorCode code) noexcept;
/// True if the same request may succeed later without a change.
bool errorCodeRetryable(ErrorCode code) noexcept;

/// Throws std::system_error for `errno` with the text "operation path".
[[noreturn]] void throwErrno(std::string_view operation, std::string_view path = {});
/// The same with a given errno value.
[[noreturn]] void throwErrno(int error, std::string_view operation, std::string_view path = {});

}  // namespace hearth
