#include "api/http/admission/NewsPlaces.h"

#include <algorithm>
#include <map>

namespace hearth::api {
namespace {

using Place = NewsPlaces::Place;
using Places = std::list<Place*>;

/// The value of `member` that most places have, among the places for which `counts` is true.
template <typename Counts>
std::string most(const Places& places, const std::string Place::*member, const Counts& counts) {
    std::map<std::string, std::size_t> counts_of;
    for (const Place* place : places) {
        if (counts(*place)) ++counts_of[place->*member];
    }
    const auto found =
        std::max_element(counts_of.begin(), counts_of.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return found == counts_of.end() ? std::string() : found->first;
}

std::size_t held(const Places& places, const std::string& tenant, const std::string* token) {
    return static_cast<std::size_t>(
        std::count_if(places.begin(), places.end(), [&](const Place* place) {
            return place->tenant == tenant && (token == nullptr || place->token == *token);
        }));
}

Places::const_iterator oldest(const Places& places, const std::string& tenant,
                              const std::string& token) {
    return std::find_if(places.begin(), places.end(), [&](const Place* place) {
        return place->tenant == tenant && place->token == token;
    });
}

}  // namespace

NewsPlaces::Taken NewsPlaces::take(const std::string& tenant, const std::string& token,
                                   std::uint64_t connection) {
    if (std::min({bounds_.all, bounds_.of_tenant, bounds_.of_token}) == 0) return {};
    Taken taken;
    const MutexLock lock(held_->mutex);
    Places& places = held_->places;
    std::string loser;
    std::string its_token = token;
    if (held(places, tenant, &token) >= bounds_.of_token) {
        loser = tenant;
    } else if (held(places, tenant, nullptr) >= bounds_.of_tenant) {
        loser = tenant;
        its_token =
            most(places, &Place::token, [&](const Place& place) { return place.tenant == loser; });
    } else if (places.size() >= bounds_.all) {
        loser = most(places, &Place::tenant, [](const Place&) { return true; });
        its_token =
            most(places, &Place::token, [&](const Place& place) { return place.tenant == loser; });
    }
    if (!loser.empty()) {
        const auto at = oldest(places, loser, its_token);
        taken.gave_up = (*at)->weak_from_this().lock();  // null if it is ending already
        if (taken.gave_up) taken.gave_up->given_up = true;
        places.erase(at);
    }
    taken.place = PlacePtr(new Place(tenant, token, connection), [held = held_](Place* place) {
        {
            const MutexLock giving(held->mutex);
            held->places.remove(place);
        }
        delete place;
    });
    places.push_back(taken.place.get());
    return taken;
}

std::size_t NewsPlaces::count() const {
    const MutexLock lock(held_->mutex);
    return held_->places.size();
}

}  // namespace hearth::api
