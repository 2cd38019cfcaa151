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

/// The demand of one workspace. `gpus`: how many devices it gets.
QuotaUse demandOf(const pool::SandboxLimits& limits, std::uint64_t gpus = 0);

/// The use and the limits of each tenant: the check and the count are one step, so no race passes
/// a limit. Thread-safe; a Hold may outlive it.
class QuotaLedger {
public:
    /// A part of what its tenant holds, given back at its end.
    class [[nodiscard]] Hold {
    public:
        Hold() = default;
        Hold(Hold&& other) noexcept
            : state_(std::exchange(other.state_, nullptr)),
              tenant_(std::move(other.tenant_)),
              use_(other.use_) {}
        Hold& operator=(Hold&& other) noexcept;
        ~Hold() { drop(); }
        /// It is another amount from now on; throws as reserve(), and keeps the former then.
        void resize(const QuotaUse& use);
        /// The same of what is there already, which is never refused.
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

    /// Takes all of it or nothing. Throws Error(QuotaExceeded) where the tenant has not enough
    /// left, InvalidSpec where it asks for more than the whole quota.
    Hold reserve(const std::string& tenant, const QuotaUse& use);
    /// `count` of these, all or none; throws likewise.
    std::vector<Hold> reserve(const std::string& tenant, const QuotaUse& each, std::size_t count);
    /// Counts use that exists already, after a restart.
    Hold take(const std::string& tenant, const QuotaUse& use);
    /// Counts so many claims. Throws Error(RateLimited) until the rate allows them, InvalidSpec
    /// where they are more than the burst.
    void admit(const std::string& tenant, std::uint32_t claims, TimePoint now);

    /// A quota as it holds from now on; nullopt: the default one. Throws Error(InvalidSpec) where a
    /// tenant holds more, and changes nothing then.
    void set(const std::string& tenant, const std::optional<QuotaSpec>& spec);
    /// At a start: what is held may be more.
    void load(const std::string& tenant, const QuotaSpec& spec);
    void forget(const std::string& tenant);
    /// That holds for the tenant, its own or the default.
    QuotaSpec specOf(const std::string& tenant) const;
    std::optional<QuotaSpec> declared(const std::string& tenant) const;
    QuotaUse useOf(const std::string& tenant) const;
    /// That have a quota or hold something.
    std::vector<std::string> tenants() const;
    std::uint32_t weightOf(const std::string& tenant) const;
    /// Guaranteed workspaces of a pool by tenant. Empty where nobody has any.
    std::map<std::string, std::uint32_t> floors(const std::string& pool) const;

    /// Throws Error(InvalidSpec) if a pool of so many sandboxes has fewer than are guaranteed of
    /// it.
    void requireFloorsFit(const std::string& pool, std::size_t members) const;

private:
    std::shared_ptr<struct QuotaState> state_;
};

}  // namespace hearth::controller
