#pragma once

#include "base/Clock.h"
#include "controller/contract/Pools.h"
#include "controller/egress/EgressGateway.h"
#include "metrics/Log.h"

namespace hearth::controller {

/// Sets the condition of this type; `since` changes only if its status changes.
void setCondition(PoolStatus& status, const Clock& clock, ConditionType type, bool value,
                  std::string reason, std::string message);

/// Reports what the server lacks at present for a pool's network: indexes of Mirror pools that are
/// not set or do not answer (condition `Mirrored`) and files of credentials' secrets
/// (`Credentials`). Neither is a reason to refuse a pool, since both may come later. Thread-safe.
class PoolDependencies {
public:
    PoolDependencies(const egress::EgressGateway& gateway, metrics::Log& log, const Clock& clock)
        : gateway_(gateway), log_(log), clock_(clock) {}

    /// Updates both conditions; reads the secrets' files, and reveals no value.
    void tell(const PoolSpec& spec, PoolStatus& status) const;
    /// Logs each thing that is lacking now, if `before` had it or lacked it for another reason.
    void logNews(const std::string& pool, const PoolStatus& before, const PoolStatus& now) const;

private:
    void tellMirrors(const PoolSpec& spec, PoolStatus& status) const;
    void tellSecrets(const PoolSpec& spec, PoolStatus& status) const;

    const egress::EgressGateway& gateway_;
    metrics::Log& log_;
    const Clock& clock_;
};

}  // namespace hearth::controller
