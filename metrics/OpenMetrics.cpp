#include "metrics/OpenMetrics.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace hearth::metrics {
namespace {

constexpr std::string_view kTotal = "_total";

/// The shortest text that reads back as the same number; with a point, as bounds need one.
std::string numberText(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    std::string text(digits.data(), end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

std::string_view typeName(prometheus::MetricType type) {
    switch (type) {
        case prometheus::MetricType::Counter:
            return "counter";
        case prometheus::MetricType::Gauge:
            return "gauge";
        case prometheus::MetricType::Histogram:
            return "histogram";
        case prometheus::MetricType::Summary:
            return "summary";
        case prometheus::MetricType::Untyped:
            break;
    }
    return "unknown";
}

class Writer {
public:
    Writer(std::string& out, const Exemplars& exemplars) : out_(out), exemplars_(exemplars) {}

    void family(const prometheus::MetricFamily& family) {
        name_ = family.name;
        const bool counter = family.type == prometheus::MetricType::Counter;
        // A counter's family has no suffix, and each of its samples has one.
        if (counter && name_.ends_with(kTotal)) name_.resize(name_.size() - kTotal.size());
        out_.append("# TYPE ").append(name_).append(" ").append(typeName(family.type)).append("\n");
        out_.append("# HELP ").append(name_).append(" ").append(escaped(family.help)).append("\n");
        for (const prometheus::ClientMetric& each : family.metric) {
            const std::string labels = labelText(each.label);
            if (counter) {
                sample(kTotal, labels, numberText(each.counter.value));
            } else if (family.type == prometheus::MetricType::Gauge) {
                sample("", labels, numberText(each.gauge.value));
            } else if (family.type == prometheus::MetricType::Histogram) {
                histogram(each.histogram, labels);
            }
        }
    }

private:
    static std::string escaped(const std::string& help) {
        std::string text;
        for (const char c : help) {
            if (c == '\n') {
                text += "\\n";
            } else {
                if (c == '\\' || c == '"') text += '\\';
                text += c;
            }
        }
        return text;
    }

    void sample(std::string_view suffix, const std::string& labels, const std::string& value) {
        begin(suffix, labels, value);
        out_ += '\n';
    }

    void begin(std::string_view suffix, const std::string& labels, const std::string& value) {
        out_.append(name_).append(suffix);
        if (!labels.empty()) out_.append("{").append(labels).append("}");
        out_.append(" ").append(value);
    }

    void histogram(const prometheus::ClientMetric::Histogram& all, const std::string& labels) {
        for (const prometheus::ClientMetric::Bucket& bucket : all.bucket) {
            std::string with_bound = labels;
            if (!with_bound.empty()) with_bound += ',';
            with_bound.append("le=\"").append(numberText(bucket.upper_bound)).append("\"");
            begin("_bucket", with_bound, std::to_string(bucket.cumulative_count));
            exemplar(labels, bucket.upper_bound);
            out_ += '\n';
        }
        sample("_count", labels, std::to_string(all.sample_count));
        sample("_sum", labels, numberText(all.sample_sum));
    }

    void exemplar(const std::string& labels, double bound) {
        const std::optional<Exemplar> found = exemplars_.find(name_, labels, bound);
        if (!found) return;
        const double at = std::chrono::duration<double>(found->at.time_since_epoch()).count();
        std::array<char, 32> seconds{};
        const auto end = std::to_chars(seconds.data(), seconds.data() + seconds.size(), at,
                                       std::chars_format::fixed, 3)
                             .ptr;
        out_.append(" # {trace_id=\"").append(found->trace);
        out_.append("\",span_id=\"").append(found->span).append("\"} ");
        out_.append(numberText(found->value)).append(" ").append(seconds.data(), end);
    }

    std::string& out_;
    const Exemplars& exemplars_;
    std::string name_;
};

}  // namespace

bool asksForOpenMetrics(const std::string& accept) {
    const std::size_t at = accept.find("application/openmetrics-text");
    if (at == std::string::npos) return false;
    const std::string item = accept.substr(at, accept.find(',', at) - at);
    return !item.ends_with("q=0") && !item.ends_with("q=0.0");
}

std::string renderOpenMetrics(const std::vector<prometheus::MetricFamily>& families,
                              const Exemplars& exemplars) {
    std::string out;
    Writer writer(out, exemplars);
    for (const prometheus::MetricFamily& each : families) writer.family(each);
    return out += "# EOF\n";
}

}  // namespace hearth::metrics
