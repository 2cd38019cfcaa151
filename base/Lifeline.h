#pragma once

#include <memory>
#include <utility>

#include "base/Mutex.h"

namespace hearth {

/// Lets callbacks reach an object that they may outlive. It must be the object's last member:
/// members after it would be destroyed before the calls under way have ended. Thread-safe.
template <class Owner>
class Lifeline {
    struct Knot {
        SharedMutex mutex;
        Owner* owner HEARTH_GUARDED_BY(mutex);  ///< null once it is destroyed
    };

public:
    /// The part that a callback keeps.
    class Line {
    public:
        explicit Line(std::shared_ptr<Knot> knot) : knot_(std::move(knot)) {}
        /// Runs `work` on the owner; the owner's destructor waits for it. Returns false, without
        /// running it, if the owner is gone.
        template <class Work>
        bool reach(Work&& work) const {
            const ReaderLock lock(knot_->mutex);
            if (knot_->owner == nullptr) return false;
            std::forward<Work>(work)(*knot_->owner);
            return true;
        }

    private:
        std::shared_ptr<Knot> knot_;
    };

    explicit Lifeline(Owner& owner) : knot_(std::make_shared<Knot>()) { knot_->owner = &owner; }
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;
    ~Lifeline() {
        const WriterLock lock(knot_->mutex);  // after the calls that are under way
        knot_->owner = nullptr;
    }
    Line line() const { return Line(knot_); }

private:
    const std::shared_ptr<Knot> knot_;
};

}  // namespace hearth
