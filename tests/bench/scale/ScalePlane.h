#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "tests/support/House.h"

namespace hearth::bench {

/// A control plane over a fake runtime with a number of equal pools, all full. Its threads work as
/// a server's do.
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

    /// Waits until every pool is full. Gives the seconds since the plane's start.
    double fill();
    /// Opens a workspace in one pool after the other, and closes it. Gives the time of the opening
    /// in milliseconds.
    double claim();
    /// Opens so many workspaces that are idle after a second, and waits for their ends. Gives how
    /// much later than due each came, in milliseconds. Once in a plane.
    std::vector<double> reclaim(unsigned count);
    /// Guarantees one workspace of each pool to each of so many tenants that never claim.
    void guarantee(unsigned tenants);
    /// Reconciles one pool after the other, with nothing else at work. Microseconds each.
    std::vector<double> reconcile(unsigned rounds);
    /// Ends the plane as kill -9 does, and begins another over the same sandboxes and data. Gives
    /// the seconds until it has all of them ready.
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

/// What a sandbox takes without any control plane: its imitated agent and the connection to it, in
/// bytes of the heap.
double connectionBytes(unsigned sandboxes);
/// Bytes that this process has from its heap.
double heapBytes();

}  // namespace hearth::bench
