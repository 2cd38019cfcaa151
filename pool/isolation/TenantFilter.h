#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "base/Json.h"

/// The two forms of the table in SeccompTable.h.
namespace hearth::pool::launcher::seccomp {

/// The agent's user as its tenant sees it: container root, or (docker) the same user.
enum class AgentIdentity { Root, Tenant };

/// `linux.seccomp` of an OCI config: the filter around the agent and everything it starts. Docker's
/// profiles have the same form.
Json ociFilter(AgentIdentity agent = AgentIdentity::Root);

/// The filter of tenant processes, ready for seccomp(SECCOMP_SET_MODE_FILTER). In front of what
/// libseccomp makes stand the rules that it cannot express (newer calls, refused arguments).
std::vector<sock_filter> tenantFilter(AgentIdentity agent = AgentIdentity::Root);

/// The same for a zygote: its children must be able to put their mark on (RLIMIT_LOCKS).
std::vector<sock_filter> zygoteFilter(AgentIdentity agent = AgentIdentity::Root);

/// The addition of such a child once it has installed the filter: the mark stays.
std::vector<sock_filter> markFilter();

/// The libseccomp part as its pseudo code, for the golden test.
std::string tenantPseudoCode();

}  // namespace hearth::pool::launcher::seccomp
