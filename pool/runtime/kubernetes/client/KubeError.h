#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/Json.h"
#include "base/Texts.h"
#include "base/http/client/HttpClient.h"

namespace hearth::pool::kubernetes {

/// Outcomes of a call that callers handle differently.
enum class KubeErrorKind {
    BadRequest,       ///< 400, 405, 406, 415 and other refusals of the request itself
    Unauthorized,     ///< 401, even with credentials that were just read again
    Forbidden,        ///< 403: RBAC, admission, or a quota that is full
    NotFound,         ///< 404: the object, or its kind
    AlreadyExists,    ///< 409 for a create
    Conflict,         ///< 409: another version, or a precondition that does not hold
    Gone,             ///< 410: the version or the continue token is too old
    Invalid,          ///< 422: validation, or a failed `test` of a JSON patch
    TooManyRequests,  ///< 429: often with retry_after
    Internal,         ///< 500 and other failures of the server
    Unavailable,      ///< 503
    Timeout,          ///< 504, or no answer in time
    VersionTooLarge,  ///< 504: the server has not seen that version yet
    Unreachable,      ///< no connection, or a broken one
    Malformed,        ///< the answer breaks the API's rules
    Stopped,          ///< stopped by the caller
};

/// The names of the kinds, for logs and metrics.
inline constexpr Texts<KubeErrorKind, 16> kKubeErrorKinds{
    {"bad_request", "unauthorized", "forbidden", "not_found", "already_exists", "conflict", "gone",
     "invalid", "too_many_requests", "internal", "unavailable", "timeout", "version_too_large",
     "unreachable", "malformed", "stopped"}};

/// A failed call as a value.
struct KubeError {
    KubeErrorKind kind = KubeErrorKind::Internal;
    int status = 0;            ///< HTTP status, or the code of an ERROR event; 0: no answer
    std::string reason = {};   ///< of the Status, e.g. "Expired"; often empty
    std::string message = {};  ///< for logs and conditions; from the server, so untrusted
    std::optional<std::chrono::seconds> retry_after = {};
    /// A write may still have succeeded: check before repeating it.
    bool ambiguous = false;

    /// Returns for example "conflict (409): the object has been modified".
    std::string text() const;
};

/// The error of an answer with a status of 400 or more; its body may be a Status, or anything.
KubeError errorOf(const http::ClientResponse& response);
/// The error of the Status in an ERROR event.
KubeError errorOf(const Json& status);
/// The error of a call without an answer.
KubeError errorOf(const http::ExchangeError& failure);
/// The error of a call for which this machine has no socket.
KubeError noSocket(const std::system_error& failure);
/// The error of an answer that cannot be understood.
KubeError malformed(std::string message);

/// A value or a KubeError.
template <class Value>
class [[nodiscard]] KubeResult {
public:
    KubeResult(Value value) : held_(std::in_place_index<0>, std::move(value)) {}
    KubeResult(KubeError error) : held_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const noexcept { return held_.index() == 0; }
    /// Throws std::bad_variant_access for a failure; error() does for a value.
    const Value& value() const& { return std::get<0>(held_); }
    Value&& value() && { return std::get<0>(std::move(held_)); }
    const KubeError& error() const { return std::get<1>(held_); }
    /// True if it failed with this kind.
    bool failed(KubeErrorKind kind) const { return !*this && error().kind == kind; }

private:
    std::variant<Value, KubeError> held_;
};

}  // namespace hearth::pool::kubernetes
