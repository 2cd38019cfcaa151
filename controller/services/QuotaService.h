#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/contract/Quotas.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"

namespace hearth::controller {

/// Quotas in the ledger; the ones set over REST are also on disk. Thread-safe.
class QuotaService final : public Quotas {
public:
    /// Loads stored quotas. An unreadable one is logged, and the default one applies instead.
    QuotaService(QuotaLedger ledger, const SpecStore& specs, const Supply& supply,
                 const History& history);

    /// Sets the configuration's quotas, which override stored ones. Call before claims are served.
    void declare(const std::map<std::string, QuotaSpec>& quotas);
    /// Sets the gauges of declared quotas.
    void measure() const;

    QuotaView own(const Principal& who) const override;
    std::vector<QuotaView> list(const Principal& who) const override;
    QuotaView get(const Principal& who, const std::string& tenant) const override;
    QuotaView put(const Principal& who, const std::string& tenant, const Json& document,
                  bool& created) override;
    void remove(const Principal& who, const std::string& tenant) override;

private:
    QuotaView view(const std::string& tenant) const;
    void requireOurs(const std::string& tenant) const HEARTH_REQUIRES(change_mutex_);
    void requireGuaranteesFit(const std::string& tenant, const QuotaSpec& spec) const;
    /// Changes the ledger, then the disk; undoes the change in the ledger if the disk refuses.
    void change(const std::string& tenant, const std::optional<QuotaSpec>& spec)
        HEARTH_REQUIRES(change_mutex_);
    void tell(const Principal& who, const char* type, const std::string& tenant);

    mutable QuotaLedger ledger_;
    const SpecStore& specs_;
    const Supply supply_;
    const History history_;
    mutable Mutex change_mutex_;  ///< one change at a time; held while the disk is written
    mutable Mutex mutex_;
    std::set<std::string> configured_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
