#pragma once

#include <memory>

#include "api/http/Handler.h"
#include "controller/contract/Principal.h"
#include "metrics/AuditLog.h"

namespace hearth::auth {

/// Has the audit log told of a request once it is answered: of one that changes something always,
/// of one that only `reads` where it was denied (401, 403, 429). What `draft` leaves open of the
/// request itself is filled in, and the resource that a creation's Location names. Until the answer
/// more may be said in the entry that is given back; null where nothing is recorded.
std::shared_ptr<metrics::AuditEntry> audited(api::Request& request, metrics::AuditLog* log,
                                             metrics::AuditEntry draft, bool reads);
/// Who asks, once that is known. `entry` may be null.
void sayWho(const std::shared_ptr<metrics::AuditEntry>& entry, const controller::Principal& who);

}  // namespace hearth::auth
