#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/Json.h"
#include "controller/contract/Quotas.h"

namespace hearth::controller {

/// Reads a quota in the form of REST and the file of quotas. Throws Error(InvalidSpec) that names
/// each wrong field, its value and what is allowed.
QuotaSpec parseQuota(const Json& document, const std::string& tenant);
/// Reads the file of --quotas: a mapping of tenants, or "*", to quotas. `document` is its content.
std::map<std::string, QuotaSpec> parseQuotas(const Json& document);
/// Throws Error(InvalidArgument) unless it is "*" or a tenant's name.
void requireQuotaName(const std::string& tenant);

}  // namespace hearth::controller
