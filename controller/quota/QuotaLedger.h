#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/tenants/TokenBucket.h"
#include "controller/contract/Quotas.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// Returns the demand of one workspace. `gpus`: how many devices it gets.
QuotaUse demandOf(const pool::SandboxLimits& limits, std::uint64_t gpus = 0);

/// The use and the limits of each tenant: check and count are one step, so no race exceeds
/// a limit. Thread-safe; a Hold may outlive it.
class QuotaLedger {
public:
    /// A part of its tenant's use, given back by the destructor.
    class [[nodiscard]] Hold {
    public:
        Hold() = default;
        Hold(Hold&& other) noexcept
            : state_(std::exchange(other.state_, nullptr)),
              tenant_(std::move(other.tenant_)),
              use_(other.use_) {}
        Hold& operator=(Hold&& other) noexcept;
        ~Hold() { drop(); }
        /// Changes the amount; throws as reserve(), and then keeps the former one.
        void resize(const QuotaUse& use);
        /// The same for an amount that exists already: never refused.
        void correct(const QuotaUse& use);

    private:
        friend class QuotaLedger;
        Hold(std::shared_ptr<struct QuotaState> state, std::string tenant, const QuotaUse& use)
            : state_(std::move(state)), tenant_(std::move(tenant)), use_(use) {}
        void drop();

        std::shared_ptr<struct QuotaState> state_;
        std::string tenant_;
        QuotaUse use_;
    };

    QuotaLedger();

    /// Takes all of it or nothing. Throws Error(QuotaExceeded) if the tenant does not have enough
    /// left, or has too many GPUs that are not yet scrubbed; InvalidSpec if it asks for more than
    /// the whole quota.
    Hold reserve(const std::string& tenant, const QuotaUse& use);
    /// Takes `count` of these, all or none; throws likewise.
    std::vector<Hold> reserve(const std::string& tenant, const QuotaUse& each, std::size_t count);
    /// Counts use that exists already, after a restart.
    Hold take(const std::string& tenant, const QuotaUse& use);
    /// Counts GPUs of the tenant, also those that are no longer its own but not yet scrubbed, until
    /// the result is destroyed: at most twice its quota of GPUs. Throws Error(QuotaExceeded).
    std::shared_ptr<void> occupy(const std::string& tenant, std::uint64_t gpus);
    /// The same for GPUs that it has already, after a restart: never refused.
    std::shared_ptr<void> occupied(const std::string& tenant, std::uint64_t gpus);
    /// Counts this number of claims. Throws Error(RateLimited) until the rate allows them,
    /// InvalidSpec if they are more than the burst.
    void admit(const std::string& tenant, std::uint32_t claims, TimePoint now);
    /// Takes back what admit() counted, for claims that had no effect and will be made again.
    void unadmit(const std::string& tenant, std::uint32_t claims);

    /// Sets the quota from now on; nullopt: the default one. Throws Error(InvalidSpec) if a
    /// tenant holds more, and then changes nothing.
    void set(const std::string& tenant, const std::optional<QuotaSpec>& spec);
    /// For a start: the tenant may hold more than this.
    void load(const std::string& tenant, const QuotaSpec& spec);
    void forget(const std::string& tenant);
    /// The quota in force for the tenant, its own or the default.
    QuotaSpec specOf(const std::string& tenant) const;
    std::optional<QuotaSpec> declared(const std::string& tenant) const;
    QuotaUse useOf(const std::string& tenant) const;
    /// The tenants that have a quota or hold something.
    std::vector<std::string> tenants() const;
    std::uint32_t weightOf(const std::string& tenant) const;
    /// Guaranteed workspaces of a pool by tenant. Empty if no tenant has any.
    std::map<std::string, std::uint32_t> floors(const std::string& pool) const;

    /// Throws Error(InvalidSpec) if a pool of `members` sandboxes has fewer than are guaranteed in
    /// it.
    void requireFloorsFit(const std::string& pool, std::size_t members) const;

private:
    /// Returns what takes occupied GPUs away again when it is destroyed.
    std::shared_ptr<void> vacation(const std::string& tenant, std::uint64_t gpus) const;

    std::shared_ptr<struct QuotaState> state_;
};

}  // namespace hearth::controller
