#include "metrics/Exemplars.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace hearth::metrics {
namespace {

void append(std::string& out, std::string_view name, std::string_view value) {
    if (!out.empty()) out += ',';
    out.append(name).append("=\"");
    for (const char c : value) {
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '\\' || c == '"') out += '\\';
        out += c;
    }
    out += '"';
}

std::string seriesKey(std::string_view family, std::string_view label_text) {
    std::string key(family);
    return key.append("{").append(label_text);
}

}  // namespace

std::string labelText(const prometheus::Labels& labels) {
    std::string out;
    for (const auto& [name, value] : labels) append(out, name, value);
    return out;
}

std::string labelText(const std::vector<prometheus::ClientMetric::Label>& labels) {
    std::string out;
    for (const prometheus::ClientMetric::Label& each : labels) append(out, each.name, each.value);
    return out;
}

void Exemplars::note(std::string_view family, const prometheus::Labels& labels,
                     const prometheus::Histogram::BucketBoundaries& buckets, double value,
                     const TraceContext& trace) {
    if (!trace.sampled) return;
    const auto bucket = std::lower_bound(buckets.begin(), buckets.end(), value);
    const double bound =
        bucket == buckets.end() ? std::numeric_limits<double>::infinity() : *bucket;
    Exemplar seen{trace.trace_id, trace.span_id, value, std::chrono::system_clock::now()};
    const std::string key = seriesKey(family, labelText(labels));
    const MutexLock lock(mutex_);
    all_[key][bound] = std::move(seen);
}

std::optional<Exemplar> Exemplars::find(const std::string& family, const std::string& label_text,
                                        double bound) const {
    const MutexLock lock(mutex_);
    const auto series = all_.find(seriesKey(family, label_text));
    if (series == all_.end()) return std::nullopt;
    const auto bucket = series->second.find(bound);
    return bucket == series->second.end() ? std::nullopt : std::optional(bucket->second);
}

void Exemplars::forgetPool(const std::string& pool) {
    const std::string label = labelText(prometheus::Labels{{"pool", pool}});
    const MutexLock lock(mutex_);
    std::erase_if(all_,
                  [&](const auto& each) { return each.first.find(label) != std::string::npos; });
}

}  // namespace hearth::metrics
