#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "base/Json.h"

/// The two forms of the table in SeccompTable.h.
namespace hearth::pool::launcher::seccomp {

/// The agent's user as its tenant sees it: container root, or (docker) the same user.
enum class AgentIdentity { Root, Tenant };

/// Returns `linux.seccomp` of an OCI config: the filter around the agent and all its processes.
/// Docker's profiles have the same form.
Json ociFilter();

/// Returns the filter of tenant processes, for seccomp(SECCOMP_SET_MODE_FILTER). Before
/// libseccomp's part come the rules that it cannot express (newer calls, refused arguments).
std::vector<sock_filter> tenantFilter(AgentIdentity agent = AgentIdentity::Root);

/// The same for a zygote: its children must be able to set their mark (RLIMIT_LOCKS).
std::vector<sock_filter> zygoteFilter(AgentIdentity agent = AgentIdentity::Root);

/// The addition for such a child, after which it cannot change the mark any more.
std::vector<sock_filter> markFilter();

/// Returns the libseccomp part as its pseudo code, for the golden test.
std::string tenantPseudoCode();

}  // namespace hearth::pool::launcher::seccomp
