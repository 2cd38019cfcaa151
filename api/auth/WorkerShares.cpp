#include "api/auth/WorkerShares.h"

#include <utility>

#include "base/Error.h"

namespace hearth::auth {
namespace {

Error refusal(const std::string& tenant, std::size_t held) {
    return Error(ErrorCode::RateLimited, "tenant " + tenant + " has " + std::to_string(held) +
                                             " requests under way, its share of the server")
        .hint("wait for some of them to end, or run with background: true")
        .retryAfter(std::chrono::seconds(1));
}

}  // namespace

struct WorkerShares::Asker {
    api::Request& request;
    std::string tenant;
    Kind kind;
};

std::shared_ptr<void> WorkerShares::find(const std::string& tenant, Kind kind) const {
    if (kind == Kind::Operators) {
        if (std::shared_ptr<void> taken = reserved_.take(tenant)) return taken;
    }
    return shares_.take(tenant);
}

std::shared_ptr<void> WorkerShares::take(const std::string& tenant, Kind kind) const {
    if (std::shared_ptr<void> taken = find(tenant, kind)) return taken;
    throw refusal(tenant, shares_.held(tenant));
}

api::Response WorkerShares::answer(api::Request& request, const std::string& tenant,
                                   std::function<api::Response()> make, Kind kind) const {
    const Asker asker{request, tenant, kind};
    if (std::shared_ptr<void> place = find(tenant, kind)) {
        return made(asker, std::move(place), make);
    }
    if (shares_.hasItsShare(tenant)) throw refusal(tenant, shares_.held(tenant));
    return waits(asker, request.startedAt() + kPatience, std::move(make));
}

api::Response WorkerShares::made(const Asker& asker, std::shared_ptr<void> place,
                                 const std::function<api::Response()>& make) const {
    api::Response response = make();
    if (auto* suspension = std::get_if<api::Suspension>(&response.body)) {
        suspension->resume = [this, asker, resume = std::move(suspension->resume)] {
            return goesOn(asker, resume);
        };
    } else {
        response.ticket = std::move(place);
    }
    return response;
}

api::Response WorkerShares::goesOn(const Asker& asker,
                                   const std::function<api::Response()>& make) const {
    std::shared_ptr<void> place = find(asker.tenant, asker.kind);
    // A stopping server has no new requests to keep a place for.
    if (place || asker.request.stopToken().stop_requested()) {
        return made(asker, std::move(place), make);
    }
    return waits(asker, TimePoint::max(), make);
}

api::Response WorkerShares::waits(const Asker& asker, TimePoint until,
                                  std::function<api::Response()> make) const {
    using Turn = std::shared_ptr<TenantPlaces::Turn>;
    const auto turn = std::make_shared<Turn>();
    api::Suspension suspension;
    suspension.subscribe = [this, turn, tenant = asker.tenant](std::function<void()> wake) {
        *turn = shares_.await(tenant, std::move(wake));
        return *turn;
    };
    suspension.ready = [turn] { return (*turn)->hasCome(); };
    suspension.until = until;
    suspension.resume = [this, asker, turn, make = std::move(make)] {
        std::shared_ptr<void> place = *turn ? (*turn)->take() : nullptr;
        turn->reset();
        if (!place && !asker.request.stopToken().stop_requested()) {
            throw refusal(asker.tenant, shares_.held(asker.tenant));
        }
        return made(asker, std::move(place), make);
    };
    suspension.give_up = [this, tenant = asker.tenant]() -> api::Response {
        throw refusal(tenant, shares_.held(tenant));
    };
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

}  // namespace hearth::auth
