#pragma once

#include <string>
#include <vector>

#include "controller/contract/Gpus.h"
#include "controller/gpus/GpuLedger.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Implements the contract's Gpus with the ledger, which knows the sandboxes, and the warm pool,
/// which knows their workspaces.
class GpuService final : public Gpus {
public:
    GpuService(GpuLedger& ledger, const pool::WarmPool& warm) : ledger_(ledger), warm_(warm) {}

    std::vector<GpuView> list(const Principal& who) const override;
    GpuView get(const Principal& who, const std::string& uuid) const override;
    GpuView scrub(const Principal& who, const std::string& uuid) override;
    std::vector<GpuProduct> products() const override;

private:
    GpuView find(const std::string& uuid) const;

    GpuLedger& ledger_;
    const pool::WarmPool& warm_;
};

}  // namespace hearth::controller
