#include "controller/queue/ReconcileLoop.h"

namespace hearth::controller {

ReconcileLoop::ReconcileLoop(WorkQueue& queue, metrics::Metrics& metrics, metrics::Log& log,
                             const Clock& clock, const metrics::Tracer& tracer)
    : queue_(queue), metrics_(metrics), log_(log), clock_(clock), tracer_(tracer) {}

ReconcileLoop::~ReconcileLoop() {
    stop();
}

void ReconcileLoop::handle(WorkKind kind, Reconcile reconcile) {
    handlers_[kind] = std::move(reconcile);
    metrics_.bornReconcile(nameOf(kind));
}

void ReconcileLoop::start() {
    threads_.emplace_back([this](const std::stop_token& stop) { queue_.keepTime(stop); });
    for (std::size_t at = 0; at < kLanes; ++at) {
        const auto lane = static_cast<Lane>(at);
        for (unsigned i = 0; i < rulesOf(lane).workers; ++i) {
            threads_.emplace_back([this, lane](const std::stop_token& stop) {
                while (const std::optional<WorkKey> key = queue_.take(lane, stop)) work(*key);
            });
        }
    }
}

void ReconcileLoop::stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    queue_.wakeAll();
    threads_.clear();
}

void ReconcileLoop::settle() {
    while (const std::optional<WorkKey> key = queue_.takeDue()) work(*key);
}

void ReconcileLoop::work(const WorkKey& key) {
    const TimePoint begin = clock_.now();
    std::string trouble;
    ReconcileResult result = ReconcileResult::settled();
    try {
        result = handlers_.at(key.kind)(key.name);
        queue_.settled(key);
        queue_.done(key);
        // The next look no longer belongs to the cause.
        if (result.again) queue_.addAfter({key.kind, key.name, key.group}, *result.again);
    } catch (const std::exception& e) {
        trouble = e.what();
        log_.error("reconcile.failed",
                   {{"kind", nameOf(key.kind)}, {"name", key.name}, {"error", e.what()}});
        queue_.done(key);
        queue_.retry(key);
    }
    if (tracer_.records(key.cause)) record(key, begin, trouble);
    const char* outcome = trouble.empty() ? "ok" : "error";
    const double seconds = toSeconds(clock_.now() - begin);
    metrics_.reconcile(std::string(nameOf(key.kind)), outcome, seconds);
    if (!log_.shows(metrics::LogLevel::Debug)) return;
    log_.debug("reconcile.done", {{"kind", nameOf(key.kind)},
                                  {"name", key.name},
                                  {"result", outcome},
                                  {"seconds", seconds},
                                  {"again_s", result.again ? toSeconds(*result.again) : 0}});
}

void ReconcileLoop::record(const WorkKey& key, TimePoint begin, const std::string& trouble) const {
    std::string name = "reconcile ";
    name += nameOf(key.kind);
    tracer_.end({.context = tracer_.aside(key.cause),
                 .name = std::move(name),
                 .start = begin,
                 .end = clock_.now(),
                 .attributes = {{"hearth.reconcile.name", key.name}},
                 .links = {key.cause},
                 .failed = !trouble.empty(),
                 .why = trouble});
}

}  // namespace hearth::controller
