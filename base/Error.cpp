#include "base/Error.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace hearth {
namespace {

struct Row {
    std::string_view name;
    int status;
    bool retryable;
};

// In the order of ErrorCode.
constexpr std::array<Row, 21> kRows{{
    {"INVALID_ARGUMENT", 400, false},
    {"UNAUTHENTICATED", 401, false},
    {"FORBIDDEN", 403, false},
    {"NOT_FOUND", 404, false},
    {"CONFLICT", 409, false},
    {"IDEMPOTENCY_IN_FLIGHT", 409, true},
    {"GONE", 410, false},
    {"PRECONDITION_FAILED", 412, false},
    {"PAYLOAD_TOO_LARGE", 413, false},
    {"IDEMPOTENCY_MISMATCH", 422, false},
    {"INVALID_SPEC", 422, false},
    {"QUOTA_EXCEEDED", 429, true},
    {"RATE_LIMITED", 429, true},
    {"POOL_EXHAUSTED", 429, true},
    {"INTERNAL", 500, false},
    {"UNSUPPORTED", 501, false},
    {"SANDBOX_LOST", 502, false},
    {"POOL_DEGRADED", 503, true},
    {"UNAVAILABLE", 503, true},
    {"DEADLINE", 504, true},
    {"DISK_FULL", 507, false},
}};

const Row& row(ErrorCode code) noexcept {
    return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view errorCodeName(ErrorCode code) noexcept {
    return row(code).name;
}
int errorCodeStatus(ErrorCode code) noexcept {
    return row(code).status;
}
bool errorCodeRetryable(ErrorCode code) noexcept {
    return row(code).retryable;
}

void throwErrno(std::string_view operation, std::string_view path) {
    throwErrno(errno, operation, path);
}

void throwErrno(int error, std::string_view operation, std::string_view path) {
    std::string text(operation);
    if (!path.empty()) text.append(" ").append(path);
    throw std::system_error(error, std::generic_category(), text);
}

}  // namespace hearth
