#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "tests/support/House.h"

namespace hearth::bench {

/// A control plane over a fake runtime with a number of equal pools, all full. Its threads work
/// like a server's.
class ScalePlane {
public:
    struct Size {
        unsigned pools = 1;
        unsigned of_pool = 10;  ///< warm sandboxes
        unsigned delayed = 0;   ///< keys of the work queue that are not due
    };
    explicit ScalePlane(Size size);
    ~ScalePlane();
    ScalePlane(const ScalePlane&) = delete;
    ScalePlane& operator=(const ScalePlane&) = delete;

    /// Waits until every pool is full. Returns the seconds since the plane's start.
    double fill();
    /// Opens a workspace and closes it, in one pool after the other with each call. Returns the
    /// time of the opening in milliseconds.
    double claim();
    /// Opens this many workspaces that are idle after a second, and waits for their ends. Returns
    /// the delay of each end in milliseconds. May be called once in a plane.
    std::vector<double> reclaim(unsigned count);
    /// Guarantees one workspace of each pool to each of this many tenants that never claim.
    void guarantee(unsigned tenants);
    /// Reconciles one pool after the other, with nothing else at work. Returns microseconds each.
    std::vector<double> reconcile(unsigned rounds);
    /// Ends the plane like kill -9, and starts another one over the same sandboxes and data.
    /// Returns the seconds until all of them are ready.
    double restart();
    unsigned sandboxes() const { return size_.pools * size_.of_pool; }

private:
    void begin(bool first);
    bool full() const;

    const Size size_;
    const SystemClock clock_;
    controller::test::Ground ground_{&clock_};
    std::unique_ptr<controller::test::House> house_;
    TimePoint began_{};
    unsigned next_ = 0;
};

/// Returns the heap bytes of a sandbox without a control plane: its imitated agent and the
/// connection to it.
double connectionBytes(unsigned sandboxes);
/// Returns the bytes of this process's heap.
double heapBytes();

}  // namespace hearth::bench
