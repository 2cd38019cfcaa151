#include "api/auth/Audited.h"

#include <utility>

#include "controller/contract/RoleName.h"

namespace hearth::auth {
namespace {

std::string resourceOf(const api::Response& response, const std::string& known) {
    if (response.status >= 300 || !response.headers.has("Location")) return known;
    const std::string& place = response.headers.get("Location");
    return place.substr(place.rfind('/') + 1);
}

}  // namespace

std::shared_ptr<metrics::AuditEntry> audited(api::Request& request, metrics::AuditLog* log,
                                             metrics::AuditEntry draft, bool reads) {
    if (log == nullptr || !log->enabled()) return nullptr;
    auto entry = std::make_shared<metrics::AuditEntry>(std::move(draft));
    entry->method = request.method();
    entry->peer = request.peer();
    entry->request_id = request.id();
    entry->trace_id = request.traceId();
    request.onAnswered([entry, reads, log, &request](const api::Response& response) {
        const bool denied =
            response.status == 401 || response.status == 403 || response.status == 429;
        if (reads && !denied) return;
        entry->status = response.status;
        entry->error_code = response.error_code;
        entry->reason = request.refusal();
        entry->resource = resourceOf(response, entry->resource);
        log->record(*entry);
    });
    return entry;
}

void sayWho(const std::shared_ptr<metrics::AuditEntry>& entry, const controller::Principal& who) {
    if (!entry) return;
    entry->tenant = who.tenant;
    entry->role = controller::kRoles.of(who.role);
    entry->token = who.token_id;
}

}  // namespace hearth::auth
