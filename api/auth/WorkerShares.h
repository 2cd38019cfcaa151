#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "api/http/Handler.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth::auth {

/// Limits the server's workers that one tenant may hold at a time, so that its slow bodies, unread
/// downloads and queued claims leave room for other tenants (TenantPlaces). Thread-safe.
class WorkerShares {
public:
    /// An operator's calls have these places in addition to the tenant's share.
    static constexpr std::size_t kReserved = 4;

    struct Bounds {
        std::size_t all = std::numeric_limits<std::size_t>::max();  ///< for all tenants together
        std::size_t of_tenant = 0;
        std::size_t operators = all;  ///< for all tenants' operators together, in addition to `all`
    };
    /// One tenant gets three eighths. One sixteenth is only for operators' calls, and another is
    /// never given out, so that short work always finds a worker. Very few workers are not divided:
    /// requests wait for them.
    static Bounds boundsOf(std::size_t workers) {
        return {.all = std::max<std::size_t>(workers - 2 * (workers / 16), 8),
                .of_tenant = std::max<std::size_t>(workers * 3 / 8, 4),
                .operators = std::max(workers / 16, kReserved + 1)};
    }

    explicit WorkerShares(const Bounds& bounds)
        : shares_(bounds.all, bounds.of_tenant), reserved_(bounds.operators, kReserved) {}
    /// `limit`: per tenant, however many tenants there are.
    explicit WorkerShares(std::size_t limit) : WorkerShares(Bounds{.of_tenant = limit}) {}

    /// A request that only an operator may send gets one of kReserved places in addition to the
    /// share, which no other work can take, or else one of the share. So the work of a tenant never
    /// stops its operators from draining, deleting and looking.
    enum class Kind { Work, Operators };
    /// How long a request waits for its first place if other tenants have taken all.
    static constexpr std::chrono::seconds kPatience{10};

    /// A place for one request, held while the returned object lives. Throws Error(RateLimited) if
    /// all places of the tenant are taken.
    std::shared_ptr<void> take(const std::string& tenant, Kind kind = Kind::Work) const;

    /// The answer of `make`, which runs with a place that the answer keeps as its ticket. A tenant
    /// that has used its share is refused as by take(); if other tenants hold all places, the
    /// request waits (a Suspension) for at most kPatience. If `make` suspends, its continuation
    /// gets a place again and waits for it without a limit: its client was already admitted. The
    /// request and this object must live until the answer is sent.
    api::Response answer(api::Request& request, const std::string& tenant,
                         std::function<api::Response()> make, Kind kind = Kind::Work) const;

private:
    struct Asker;

    std::shared_ptr<void> find(const std::string& tenant, Kind kind) const;
    api::Response made(const Asker& asker, std::shared_ptr<void> place,
                       const std::function<api::Response()>& make) const;
    api::Response goesOn(const Asker& asker, const std::function<api::Response()>& make) const;
    api::Response waits(const Asker& asker, TimePoint until,
                        std::function<api::Response()> make) const;

    mutable TenantPlaces shares_;
    mutable TenantPlaces reserved_;
};

}  // namespace hearth::auth
