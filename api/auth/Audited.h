#pragma once

#include <memory>

#include "api/http/Handler.h"
#include "controller/contract/Principal.h"
#include "metrics/AuditLog.h"

namespace hearth::auth {

/// Records an answered request in the audit log: always if it changes something; if it only
/// `reads`, only when it was denied (401, 403, 429). Empty fields of `draft` are filled from the
/// request and from the Location of a creation. Until the answer the caller may add to the returned
/// entry; null if nothing is recorded.
std::shared_ptr<metrics::AuditEntry> audited(api::Request& request, metrics::AuditLog* log,
                                             metrics::AuditEntry draft, bool reads);
/// Sets the caller when known. `entry` may be null.
void sayWho(const std::shared_ptr<metrics::AuditEntry>& entry, const controller::Principal& who);

}  // namespace hearth::auth
