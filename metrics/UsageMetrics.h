#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <set>
#include <string>

#include "base/Mutex.h"

namespace hearth::metrics {

/// The use per class of tenants. `tenant_class` is the tenant if it has its own quota, else
/// "other", so that clients cannot create series. Thread-safe.
class UsageMetrics {
public:
    struct Labels {
        std::string tenant_class;
        std::string pool;
    };
    struct Use {
        double claims = 0;
        double sandbox_seconds = 0;
        double cpu_seconds = 0;
        double gpu_seconds = 0;
        double memory_byte_seconds = 0;
        double egress_bytes = 0;
    };

    explicit UsageMetrics(prometheus::Registry& registry);

    void add(const Labels& of, const Use& use);
    /// Open workspaces by class; a class of an earlier call that is missing here becomes zero.
    void workspaces(const std::map<std::string, std::size_t>& by_class);
    void forgetPool(const std::string& pool);

private:
    template <typename T>
    using Family = prometheus::Family<T>;

    Family<prometheus::Counter>& claims_;
    Family<prometheus::Counter>& sandbox_;
    Family<prometheus::Counter>& cpu_;
    Family<prometheus::Counter>& gpu_;
    Family<prometheus::Counter>& memory_;
    Family<prometheus::Counter>& egress_;
    Family<prometheus::Gauge>& workspaces_;
    Mutex mutex_;
    std::set<std::string> classes_ HEARTH_GUARDED_BY(mutex_);  ///< all classes ever set
};

}  // namespace hearth::metrics
