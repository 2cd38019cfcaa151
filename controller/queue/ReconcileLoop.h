#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "controller/queue/WorkQueue.h"
#include "metrics/Log.h"
#include "metrics/trace/Tracer.h"

namespace hearth::controller {

/// Either nothing more to do, or look again after a while. A failure is an exception, not a result.
struct ReconcileResult {
    std::optional<std::chrono::nanoseconds> again;

    static ReconcileResult settled() { return {}; }
    static ReconcileResult after(std::chrono::nanoseconds delay) { return {delay}; }
};

/// Runs the reconcilers: takes keys from the queue's lanes on their workers. Only here are their
/// failures caught, counted and logged, and their keys put back.
class ReconcileLoop {
public:
    using Reconcile = std::function<ReconcileResult(const std::string& name)>;

    ReconcileLoop(WorkQueue& queue, metrics::Metrics& metrics, metrics::Log& log,
                  const Clock& clock, const metrics::Tracer& tracer);
    ~ReconcileLoop();
    ReconcileLoop(const ReconcileLoop&) = delete;
    ReconcileLoop& operator=(const ReconcileLoop&) = delete;

    /// Call before start().
    void handle(WorkKind kind, Reconcile reconcile);
    /// Each lane has workers of its own (Lanes.h).
    void start();
    /// Ends the workers after their present work.
    void stop();
    /// For tests: works on the caller's thread until no key is due.
    void settle();

private:
    void work(const WorkKey& key);
    /// Records a trace of its own, linked to its cause: one look may serve many claims.
    void record(const WorkKey& key, TimePoint begin, const std::string& trouble) const;

    WorkQueue& queue_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    const Clock& clock_;
    const metrics::Tracer& tracer_;
    std::map<WorkKind, Reconcile> handlers_;
    std::vector<std::jthread> threads_;  ///< the workers and the queue's time keeper
};

}  // namespace hearth::controller
