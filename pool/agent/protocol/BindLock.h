#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// The lock of PROTOCOL.md: one bind in a life. Pure: no clock, no I/O, standard library only.
namespace hearth::agent {

/// The holder of a sandbox. `labels` and `note` are JSON text, kept for the server and never read
/// here.
struct Binding {
    std::string claim_id;
    std::int64_t attempt = 0;
    std::uint64_t epoch = 0;
    std::string tenant;
    std::string workspace_id;
    std::string fingerprint;
    std::string labels = "{}";
    std::string note = "{}";
    std::int64_t bound_at_ns = 0;
};

enum class BindOutcome : std::uint8_t {
    Bound,                ///< this call took the sandbox
    Repeated,             ///< the same claim asked again; nothing has changed
    FingerprintMismatch,  ///< the same claim with another body
    Held,                 ///< another claim holds it
    StaleEpoch,           ///< the caller has been replaced by a newer server
};

/// Grants the sandbox to exactly one claim and fences out servers of lower epochs. In any order of
/// calls, at most one ever returns Bound. Not thread-safe.
class BindLock {
public:
    /// False if `epoch` is below the highest seen; otherwise remembers it. Called for every
    /// operation that carries an epoch.
    bool admit(std::uint64_t epoch) noexcept {
        if (epoch < highest_epoch_) return false;
        highest_epoch_ = epoch;
        return true;
    }

    /// Takes the sandbox for `request` at `now_ns`. The first caller's values are kept for ever; a
    /// refused caller still raises the highest epoch if its own was not stale.
    BindOutcome bind(Binding request, std::int64_t now_ns) {
        if (!admit(request.epoch)) return BindOutcome::StaleEpoch;
        if (!holder_) {
            request.bound_at_ns = now_ns;
            holder_ = std::move(request);
            return BindOutcome::Bound;
        }
        if (holder_->claim_id != request.claim_id) return BindOutcome::Held;
        return holder_->fingerprint == request.fingerprint ? BindOutcome::Repeated
                                                           : BindOutcome::FingerprintMismatch;
    }

    /// Empty until a bind succeeded, then the same value for ever.
    const std::optional<Binding>& holder() const noexcept { return holder_; }
    std::uint64_t highestEpoch() const noexcept { return highest_epoch_; }

private:
    std::optional<Binding> holder_;
    std::uint64_t highest_epoch_ = 0;
};

}  // namespace hearth::agent
