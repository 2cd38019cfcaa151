#include "controller/egress/policy/NetworkPolicy.h"

#include <algorithm>

namespace hearth::egress {
bool NetworkPolicy::allows(const Destination& destination) const {
    if (mode != NetworkMode::Egress || lists.empty()) return false;
    return std::all_of(lists.begin(), lists.end(),
                       [&](const AllowList& list) { return list.allows(destination); });
}

}  // namespace hearth::egress
