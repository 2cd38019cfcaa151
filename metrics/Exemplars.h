#pragma once

#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/trace/TraceContext.h"

namespace hearth::metrics {

/// One observation of a histogram with the trace that explains it.
struct Exemplar {
    std::string trace;
    std::string span;
    double value = 0;
    WallTime at;
};

/// `{a="b",c="d"}` without the braces, in the given order and escaped for either text format.
std::string labelText(const prometheus::Labels& labels);
std::string labelText(const std::vector<prometheus::ClientMetric::Label>& labels);

/// The last exemplar of each bucket; prometheus-cpp cannot store exemplars. Thread-safe.
class Exemplars {
public:
    /// `family` is a histogram's full name. Traces that are not recorded are ignored, because they
    /// lead nowhere.
    void note(std::string_view family, const prometheus::Labels& labels,
              const prometheus::Histogram::BucketBoundaries& buckets, double value,
              const TraceContext& trace);
    /// The exemplar of the bucket up to `bound`, which may be infinite.
    std::optional<Exemplar> find(const std::string& family, const std::string& label_text,
                                 double bound) const;
    void forgetPool(const std::string& pool);

private:
    mutable Mutex mutex_;
    /// The key is family and labels, then the bucket's bound.
    std::map<std::string, std::map<double, Exemplar>> all_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::metrics
