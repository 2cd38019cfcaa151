#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hearth::api {

/// How many streams may be open: in all, and of one tenant, so that those of one leave room for
/// the others. Thread-safe; a place may outlive the object.
class StreamPlaces {
public:
    StreamPlaces(std::size_t all, std::size_t each) : all_(all), each_(each) {}

    /// A place for one stream, held as long as the returned object; null where there is none left.
    std::shared_ptr<void> take(const std::string& tenant) {
        const std::lock_guard lock(taken_->mutex);
        std::size_t& held = taken_->of[tenant];
        if (taken_->all >= all_ || held >= each_) return nullptr;
        ++taken_->all;
        ++held;
        return {this, [taken = taken_, tenant](void*) {
                    const std::lock_guard giving(taken->mutex);
                    --taken->all;
                    const auto found = taken->of.find(tenant);
                    if (--found->second == 0) taken->of.erase(found);
                }};
    }
    std::size_t count() const {
        const std::lock_guard lock(taken_->mutex);
        return taken_->all;
    }

private:
    struct Taken {
        std::mutex mutex;
        std::size_t all = 0;                    ///< guarded by mutex
        std::map<std::string, std::size_t> of;  ///< by tenant; guarded by mutex
    };
    const std::size_t all_;
    const std::size_t each_;
    const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace hearth::api
