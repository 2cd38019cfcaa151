#include "metrics/trace/Sampler.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/Error.h"

namespace hearth::metrics {
namespace {

constexpr std::uint64_t kAll = std::uint64_t{1} << 56U;
constexpr std::size_t kDigits = 14;
constexpr std::string_view kParentBased = "parentbased_";

double share(const std::string& argument) {
    if (argument.empty()) return 1;
    double value = -1;
    const char* end = argument.data() + argument.size();
    const auto read = std::from_chars(argument.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || !(value >= 0 && value <= 1)) {
        throw Error(ErrorCode::InvalidArgument,
                    "OTEL_TRACES_SAMPLER_ARG is a share from 0 to 1, not '" + argument + "'");
    }
    return value;
}

}  // namespace

Sampler Sampler::of(const std::string& name, const std::string& argument) {
    Sampler made;
    std::string_view kind = name;
    made.follows_parent_ = kind.starts_with(kParentBased);
    if (made.follows_parent_) kind.remove_prefix(kParentBased.size());
    if (kind == "always_on") {
        made.below_ = kAll;
    } else if (kind == "traceidratio") {
        made.below_ =
            static_cast<std::uint64_t>(std::llround(share(argument) * static_cast<double>(kAll)));
    } else if (kind != "always_off") {
        throw Error(ErrorCode::InvalidArgument,
                    "OTEL_TRACES_SAMPLER names no sampler: '" + name + "'")
            .hint("always_on, always_off, traceidratio, or parentbased_ before one of them");
    }
    return made;
}

bool Sampler::takes(const std::optional<TraceContext>& parent, const std::string& trace) const {
    if (follows_parent_ && parent) return parent->sampled;
    if (below_ == 0 || trace.size() < kDigits) return false;
    std::uint64_t low = 0;
    const char* end = trace.data() + trace.size();
    std::from_chars(end - kDigits, end, low, 16);
    return low < below_;
}

}  // namespace hearth::metrics
