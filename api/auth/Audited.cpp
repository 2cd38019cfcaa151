#include "api/auth/Audited.h"

#include <utility>

#include "api/auth/RoleName.h"

namespace hearth::auth {
namespace {

std::string resourceOf(const api::Response& response, const std::string& known) {
    for (const auto& [name, value] : response.headers) {
        if (name == "Location" && response.status < 300) return value.substr(value.rfind('/') + 1);
    }
    return known;
}

}  // namespace

std::shared_ptr<metrics::AuditEntry> audited(api::Request& request, metrics::AuditLog* log,
                                             metrics::AuditEntry draft, bool reads) {
    if (log == nullptr || !log->enabled()) return nullptr;
    const auto entry = std::make_shared<metrics::AuditEntry>(std::move(draft));
    entry->method = request.method();
    entry->peer = request.peer();
    entry->request_id = request.id();
    entry->trace_id = request.traceId();
    request.onAnswered([entry, reads, log](const api::Response& response) {
        const bool denied =
            response.status == 401 || response.status == 403 || response.status == 429;
        if (reads && !denied) return;
        entry->status = response.status;
        entry->error_code = response.error_code;
        entry->resource = resourceOf(response, entry->resource);
        log->record(*entry);
    });
    return entry;
}

void sayWho(const std::shared_ptr<metrics::AuditEntry>& entry, const controller::Principal& who) {
    if (!entry) return;
    entry->tenant = who.tenant;
    entry->role = roleName(who.role);
    entry->token = who.token_id;
}

}  // namespace hearth::auth
