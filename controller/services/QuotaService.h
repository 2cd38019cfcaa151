#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/Quotas.h"
#include "controller/journal/Journal.h"
#include "controller/store/History.h"
#include "controller/workspaces/QuotaLedger.h"

namespace hearth::controller {

/// Declares quotas: those of the configuration, which only it changes, and those set at run time,
/// which the journal keeps. Thread-safe.
class QuotaService final : public Quotas {
public:
    /// Puts both in force. A stored one that cannot be read is told in the log and left out.
    QuotaService(QuotaLedger& ledger, Journal& journal, const History& history,
                 const std::map<std::string, TenantQuota>& configured);

    std::vector<QuotaView> list(const Principal& who) override;
    QuotaView get(const Principal& who, const std::string& tenant) override;
    QuotaView put(const Principal& who, const std::string& tenant,
                  const TenantQuota& quota) override;
    void remove(const Principal& who, const std::string& tenant) override;

private:
    void requireChangeable(const Principal& who, const std::string& tenant) const;
    QuotaView view(const std::string& tenant) const;
    void tell(const Principal& who, const std::string& tenant, const char* what) const;

    QuotaLedger& ledger_;
    Journal& journal_;
    const History history_;
    std::set<std::string> configured_;  ///< fixed after the constructor
    Mutex change_mutex_;                ///< one change at a time; held across the disk
};

}  // namespace hearth::controller
