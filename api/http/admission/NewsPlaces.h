#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/Mutex.h"

namespace hearth::api {

/// The places of streams that wait for news (Response::news), limited per token, per tenant and in
/// total. A new stream always gets one; if they are full, the holder with the most loses its
/// oldest. Thread-safe; a place may outlive the object.
class NewsPlaces {
public:
    struct Bounds {
        std::size_t all = 1024;
        std::size_t of_tenant = 256;
        std::size_t of_token = 64;
    };
    explicit NewsPlaces(Bounds bounds) : bounds_(bounds) {}

    /// The place of one stream, held while this object lives.
    struct Place : std::enable_shared_from_this<Place> {
        Place(std::string its_tenant, std::string its_token, std::uint64_t its_connection)
            : tenant(std::move(its_tenant)),
              token(std::move(its_token)),
              connection(its_connection) {}

        const std::string tenant;
        const std::string token;
        const std::uint64_t connection;
        std::atomic<bool> given_up{false};  ///< its stream must end
    };
    using PlacePtr = std::shared_ptr<Place>;
    struct Taken {
        PlacePtr place;    ///< null only if there are no places at all
        PlacePtr gave_up;  ///< the place that was given up for it, or null
    };
    Taken take(const std::string& tenant, const std::string& token, std::uint64_t connection);
    std::size_t count() const;

private:
    struct Held {
        Mutex mutex;
        std::list<Place*> places HEARTH_GUARDED_BY(mutex);  ///< oldest first
    };

    const Bounds bounds_;
    const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace hearth::api
