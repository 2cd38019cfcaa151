#include "metrics/GpuMetrics.h"

namespace hearth::metrics {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

/// A scrub overwrites some hundred gigabytes a second, or waits for the last user's processes.
const prometheus::Histogram::BucketBoundaries kScrubBuckets{0.1, 0.25, 0.5, 1,   2.5, 5,
                                                            10,  30,   60,  120, 300};

}  // namespace

GpuMetrics::GpuMetrics(prometheus::Registry& registry)
    : devices_(BuildGauge().Name("hearth_gpus").Help("GPUs by state").Register(registry)),
      scrubs_(BuildHistogram()
                  .Name("hearth_gpu_scrub_seconds")
                  .Help("Scrubs of GPUs between two users, by result")
                  .Register(registry)),
      idle_(BuildCounter()
                .Name("hearth_gpu_idle_seconds_total")
                .Help("Time that GPUs were leased to sandboxes without a claim")
                .Register(registry)) {
    for (const bool clean : {true, false}) {
        scrubs_.Add({{"result", clean ? "clean" : "failed"}}, kScrubBuckets);
    }
}

void GpuMetrics::devices(std::string_view state, double count) {
    devices_.Add({{"state", std::string(state)}}).Set(count);
}

void GpuMetrics::scrub(bool clean, double seconds) {
    scrubs_.Add({{"result", clean ? "clean" : "failed"}}, kScrubBuckets).Observe(seconds);
}

void GpuMetrics::idle(const std::string& pool, double gpu_seconds) {
    idle_.Add({{"pool", pool}}).Increment(gpu_seconds);
}

void GpuMetrics::forgetPool(const std::string& pool) {
    idle_.Remove(&idle_.Add({{"pool", pool}}));
}

}  // namespace hearth::metrics
