#include "base/tenants/TenantPlaces.h"

#include <list>
#include <map>
#include <utility>
#include <vector>

#include "base/Mutex.h"

namespace hearth {

struct TenantPlaces::State : std::enable_shared_from_this<State> {
    State(std::size_t most, std::size_t most_each) : all(most), each(most_each) {}

    std::size_t held(const std::string& tenant) const HEARTH_REQUIRES(mutex) {
        const auto found = of.find(tenant);
        return found == of.end() ? 0 : found->second;
    }
    bool mayTake(const std::string& tenant) const HEARTH_REQUIRES(mutex) {
        const std::size_t own = held(tenant);
        const std::size_t reserve = each < all ? own : 0;
        return own < each && taken < all && reserve < all - taken;
    }
    std::shared_ptr<void> place(const std::string& tenant) HEARTH_REQUIRES(mutex) {
        ++taken;
        ++of[tenant];
        // Only its deleter matters; it points at something so that it is not null.
        return {this, [self = shared_from_this(), tenant](void*) { self->giveBack(tenant); }};
    }

    void giveBack(const std::string& tenant) HEARTH_EXCLUDES(mutex);

    const std::size_t all;
    const std::size_t each;
    Mutex mutex;
    std::size_t taken HEARTH_GUARDED_BY(mutex) = 0;
    std::map<std::string, std::size_t> of HEARTH_GUARDED_BY(mutex);  ///< by tenant
    std::list<std::weak_ptr<InLine>> line HEARTH_GUARDED_BY(mutex);
};

class TenantPlaces::InLine : public Turn {
public:
    InLine(std::shared_ptr<State> state, std::string tenant, std::function<void()> come)
        : state_(std::move(state)), tenant_(std::move(tenant)), come_(std::move(come)) {}

    bool hasCome() const override {
        const MutexLock lock(state_->mutex);
        return come_yet_;
    }
    std::shared_ptr<void> take() override {
        const MutexLock lock(state_->mutex);
        return std::move(place_);
    }
    const std::string& tenant() const { return tenant_; }
    /// Needs the state's mutex, which the checker cannot tell from that of another state.
    void give(std::shared_ptr<void> place) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
        come_yet_ = true;
        place_ = std::move(place);
    }
    void tell() const { come_(); }

private:
    const std::shared_ptr<State> state_;
    const std::string tenant_;
    const std::function<void()> come_;
    bool come_yet_ HEARTH_GUARDED_BY(state_->mutex) = false;
    std::shared_ptr<void> place_ HEARTH_GUARDED_BY(state_->mutex);
};

void TenantPlaces::State::giveBack(const std::string& tenant) {
    // The last reference may end here, without the lock: then its place is given back.
    std::vector<std::shared_ptr<InLine>> seen;
    std::vector<std::shared_ptr<InLine>> served;
    {
        const MutexLock lock(mutex);
        --taken;
        const auto own = of.find(tenant);
        if (--own->second == 0) of.erase(own);
        for (auto each_in_line = line.begin(); each_in_line != line.end();) {
            seen.push_back(each_in_line->lock());
            const bool gone = !seen.back();
            if (!gone && mayTake(seen.back()->tenant())) {
                seen.back()->give(place(seen.back()->tenant()));
                served.push_back(seen.back());
            } else if (!gone) {
                ++each_in_line;
                continue;
            }
            each_in_line = line.erase(each_in_line);
        }
    }
    for (const std::shared_ptr<InLine>& turn : served) turn->tell();
}

TenantPlaces::TenantPlaces(std::size_t all, std::size_t each)
    : state_(std::make_shared<State>(all, each)) {}

std::shared_ptr<void> TenantPlaces::take(const std::string& tenant) {
    const MutexLock lock(state_->mutex);
    return state_->mayTake(tenant) ? state_->place(tenant) : nullptr;
}

std::shared_ptr<TenantPlaces::Turn> TenantPlaces::await(const std::string& tenant,
                                                        std::function<void()> come) {
    const auto turn = std::make_shared<InLine>(state_, tenant, std::move(come));
    {
        const MutexLock lock(state_->mutex);
        if (!state_->mayTake(tenant)) {
            state_->line.push_back(turn);
            return turn;
        }
        turn->give(state_->place(tenant));
    }
    turn->tell();
    return turn;
}

std::size_t TenantPlaces::count() const {
    const MutexLock lock(state_->mutex);
    return state_->taken;
}

std::size_t TenantPlaces::held(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    return state_->held(tenant);
}

bool TenantPlaces::hasItsShare(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    const std::size_t own = state_->held(tenant);
    return own >= state_->each || (own > 0 && state_->taken < state_->all);
}

}  // namespace hearth
