#include "pool/runtime/kubernetes/client/KubeError.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace hearth::pool::kubernetes {
namespace {

constexpr std::size_t kMostMessage = 1'024;
constexpr std::chrono::seconds kLongestRetryAfter{3'600};

struct KindOfReason {
    const char* reason;
    KubeErrorKind kind;
};
/// Reasons in apimachinery's metav1.StatusReason that say more than the code.
constexpr KindOfReason kReasons[] = {{"AlreadyExists", KubeErrorKind::AlreadyExists},
                                     {"Expired", KubeErrorKind::Gone},
                                     {"Gone", KubeErrorKind::Gone},
                                     {"ServerTimeout", KubeErrorKind::Unavailable}};

KubeErrorKind kindOf(int status, const std::string& reason) {
    for (const KindOfReason& known : kReasons) {
        if (reason == known.reason) return known.kind;
    }
    switch (status) {
        case 401:
            return KubeErrorKind::Unauthorized;
        case 403:
            return KubeErrorKind::Forbidden;
        case 404:
            return KubeErrorKind::NotFound;
        case 409:
            return KubeErrorKind::Conflict;
        case 410:
            return KubeErrorKind::Gone;
        case 422:
            return KubeErrorKind::Invalid;
        case 429:
            return KubeErrorKind::TooManyRequests;
        case 503:
            return KubeErrorKind::Unavailable;
        case 504:
            return KubeErrorKind::Timeout;
        default:
            return status < 500 ? KubeErrorKind::BadRequest : KubeErrorKind::Internal;
    }
}

Json objectAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : Json::object();
}

/// The server waits for its cache to reach a version; only the cause differs from a timeout.
bool saysTooLarge(const Json& details, const std::string& message) {
    const auto causes = details.find("causes");
    if (causes != details.end() && causes->is_array()) {
        const auto is_it = [](const Json& cause) {
            return cause.is_object() && textAt(cause, "reason") == "ResourceVersionTooLarge";
        };
        if (std::ranges::any_of(*causes, is_it)) return true;
    }
    return message.starts_with("Too large resource version");
}

std::optional<std::chrono::seconds> secondsOf(std::string_view text) {
    long value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return std::min(std::chrono::seconds(value), kLongestRetryAfter);
}

KubeError fromStatus(const Json& status, int code) {
    const Json details = objectAt(status, "details");
    KubeError error{.kind = KubeErrorKind::Internal,
                    .status = code,
                    .reason = textAt(status, "reason"),
                    .message = textAt(status, "message").substr(0, kMostMessage),
                    .ambiguous = code >= 500};
    error.kind = kindOf(code, error.reason);
    if (error.kind == KubeErrorKind::Timeout && saysTooLarge(details, error.message)) {
        error.kind = KubeErrorKind::VersionTooLarge;
    }
    const auto wait = details.find("retryAfterSeconds");
    if (wait != details.end() && wait->is_number_unsigned()) {
        const auto most = static_cast<std::uint64_t>(kLongestRetryAfter.count());
        const auto count = std::min(wait->get<std::uint64_t>(), most);
        if (count > 0) error.retry_after = std::chrono::seconds(count);
    }
    return error;
}

}  // namespace

std::string KubeError::text() const {
    std::string out = kKubeErrorKinds.of(kind);
    if (status != 0) out += " (" + std::to_string(status) + ")";
    return message.empty() ? out : out + ": " + message;
}

KubeError errorOf(const http::ClientResponse& response) {
    Json status = Json::object();
    try {
        Json parsed = parseJson(response.body);
        if (parsed.is_object()) status = std::move(parsed);
    } catch (const Error&) {  // a proxy's page, or a plain text
        status["message"] = toUtf8(std::string_view(response.body).substr(0, kMostMessage));
    }
    KubeError error = fromStatus(status, response.status);
    if (const auto header = response.header("Retry-After")) {
        if (const auto wait = secondsOf(*header)) error.retry_after = wait;
    }
    return error;
}

KubeError errorOf(const Json& status) {
    const auto code = status.find("code");
    const bool known =
        code != status.end() && code->is_number_integer() && *code >= 400 && *code < 600;
    return fromStatus(status, known ? code->get<int>() : 500);
}

KubeError errorOf(const http::ExchangeError& failure) {
    using Exchange = http::ExchangeError::Kind;
    KubeError error{.message = failure.what()};
    switch (failure.kind()) {
        case Exchange::Late:
            error.kind = KubeErrorKind::Timeout;
            error.ambiguous = true;
            break;
        case Exchange::Stopped:
            error.kind = KubeErrorKind::Stopped;
            error.ambiguous = true;
            break;
        case Exchange::NotHttp:
        case Exchange::TooLong:
            error.kind = KubeErrorKind::Malformed;
            error.ambiguous = true;
            break;
        default:
            error.kind = KubeErrorKind::Unreachable;
            error.ambiguous = failure.kind() == Exchange::Lost;
    }
    return error;
}

KubeError noSocket(const std::system_error& failure) {
    return {.kind = KubeErrorKind::Unreachable, .message = failure.what()};
}

KubeError malformed(std::string message) {
    return {.kind = KubeErrorKind::Malformed, .message = std::move(message), .ambiguous = true};
}

}  // namespace hearth::pool::kubernetes
