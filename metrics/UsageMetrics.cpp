#include "metrics/UsageMetrics.h"

namespace hearth::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;

Family<Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

UsageMetrics::UsageMetrics(prometheus::Registry& registry)
    : claims_(counter(registry, "hearth_tenant_claims_total", "Workspaces that were bound")),
      sandbox_(counter(registry, "hearth_tenant_sandbox_seconds_total",
                       "Time that sandboxes had a workspace")),
      cpu_(counter(registry, "hearth_tenant_cpu_seconds_total",
                   "Processor time that workspaces used")),
      gpu_(counter(registry, "hearth_tenant_gpu_seconds_total",
                   "Time that workspaces held GPUs, for each device")),
      memory_(counter(registry, "hearth_tenant_memory_byte_seconds_total",
                      "Memory in use by workspaces, times its time")),
      egress_(counter(registry, "hearth_tenant_egress_bytes_total",
                      "Bytes between workspaces and the outside, both ways")),
      workspaces_(prometheus::BuildGauge()
                      .Name("hearth_tenant_workspaces")
                      .Help("Open workspaces, by tenants with a quota of their own, and others")
                      .Register(registry)) {
    workspaces({{"other", 0}});
}

void UsageMetrics::add(const Labels& of, const Use& use) {
    const prometheus::Labels labels{{"tenant_class", of.tenant_class}, {"pool", of.pool}};
    const MutexLock lock(mutex_);
    classes_.insert(of.tenant_class);
    claims_.Add(labels).Increment(use.claims);
    sandbox_.Add(labels).Increment(use.sandbox_seconds);
    cpu_.Add(labels).Increment(use.cpu_seconds);
    gpu_.Add(labels).Increment(use.gpu_seconds);
    memory_.Add(labels).Increment(use.memory_byte_seconds);
    egress_.Add(labels).Increment(use.egress_bytes);
}

void UsageMetrics::workspaces(const std::map<std::string, std::size_t>& by_class) {
    const MutexLock lock(mutex_);
    for (const auto& [name, count] : by_class) classes_.insert(name);
    for (const std::string& name : classes_) {
        const auto found = by_class.find(name);
        workspaces_.Add({{"tenant_class", name}})
            .Set(found == by_class.end() ? 0 : static_cast<double>(found->second));
    }
}

void UsageMetrics::forgetPool(const std::string& pool) {
    const MutexLock lock(mutex_);
    for (Family<Counter>* family : {&claims_, &sandbox_, &cpu_, &gpu_, &memory_, &egress_}) {
        for (const std::string& name : classes_) {
            family->Remove(&family->Add({{"tenant_class", name}, {"pool", pool}}));
        }
    }
}

}  // namespace hearth::metrics
