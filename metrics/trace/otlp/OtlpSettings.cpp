#include "metrics/trace/otlp/OtlpSettings.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "base/Error.h"
#include "base/Version.h"
#include "base/http/Url.h"
#include "base/http/client/ServerUrl.h"

namespace hearth::metrics {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::InvalidArgument, name + " " + why).hint(hint);
}

/// Looks up variables; those for traces alone take precedence over those for all signals.
class Variables {
public:
    explicit Variables(const Environment& read) : read_(read) {}

    /// OTEL_EXPORTER_OTLP_TRACES_`end`, or else OTEL_EXPORTER_OTLP_`end`; remembers the name.
    std::string of(const char* end) {
        name_ = std::string("OTEL_EXPORTER_OTLP_TRACES_") + end;
        std::string value = read_(name_.c_str());
        if (!value.empty()) return value;
        name_ = std::string("OTEL_EXPORTER_OTLP_") + end;
        return read_(name_.c_str());
    }
    std::string plain(const char* name) {
        name_ = name;
        return read_(name);
    }
    /// A number of at least `least`; `otherwise` if the value is empty.
    std::size_t number(const std::string& value, std::size_t least, std::size_t otherwise) const {
        if (value.empty()) return otherwise;
        constexpr std::size_t kMost = 100'000'000;
        std::size_t read = 0;
        const char* end = value.data() + value.size();
        const auto result = std::from_chars(value.data(), end, read);
        if (result.ec != std::errc() || result.ptr != end || read < least || read > kMost) {
            refuse(name_,
                   "is not a number of at least " + std::to_string(least) + ": '" + value + "'",
                   "Times are milliseconds");
        }
        return read;
    }
    const std::string& name() const { return name_; }

private:
    const Environment& read_;
    std::string name_;
};

std::string percentDecoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        const char* digits = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
            out.push_back(static_cast<char>(value));
            i += 2;
        } else {
            out.push_back(text[i]);
        }
    }
    return out;
}

/// "key=value,key=value", percent-encoded. `value` is not quoted in errors: headers hold secrets.
std::vector<std::pair<std::string, std::string>> pairs(const std::string& name,
                                                       std::string_view value) {
    std::vector<std::pair<std::string, std::string>> all;
    while (!value.empty()) {
        const std::string_view item = value.substr(0, value.find(','));
        value.remove_prefix(std::min(value.size(), item.size() + 1));
        if (trim(item).empty()) continue;
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos || trim(item.substr(0, equals)).empty()) {
            refuse(name, "has an item without '='", "Write it as key=value,key=value");
        }
        const auto control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
        const std::string decoded = percentDecoded(item);
        if (std::any_of(decoded.begin(), decoded.end(), control)) {
            refuse(name, "holds a control character", "Write texts of printable characters");
        }
        all.emplace_back(percentDecoded(trim(item.substr(0, equals))),
                         percentDecoded(trim(item.substr(equals + 1))));
    }
    return all;
}

std::string urlOf(Variables& from) {
    std::string url = from.plain("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    if (url.empty()) {
        url = from.plain("OTEL_EXPORTER_OTLP_ENDPOINT");
        if (url.empty()) return {};
        if (url.back() == '/') url.pop_back();
        url += "/v1/traces";
    }
    try {
        static_cast<void>(http::ServerUrl::parse(url));
    } catch (const Error& e) {
        refuse(from.name(), std::string("is ") + e.what(), e.hint());
    }
    return url;
}

bool sends(Variables& from) {
    const std::string off = from.plain("OTEL_SDK_DISABLED");
    if (equalsIgnoreCase(off, "true")) return false;
    const std::string exporter = from.plain("OTEL_TRACES_EXPORTER");
    if (exporter == "none") return false;
    if (!exporter.empty() && exporter != "otlp") {
        refuse("OTEL_TRACES_EXPORTER", "names no exporter of this server: '" + exporter + "'",
               "otlp or none");
    }
    return true;
}

void readProtocol(Variables& from, OtlpSettings& made) {
    const std::string protocol = from.of("PROTOCOL");
    if (!protocol.empty() && protocol != "http/protobuf") {
        refuse(from.name(), "is not supported: '" + protocol + "'",
               "http/protobuf; collectors listen for it on port 4318");
    }
    const std::string compression = from.of("COMPRESSION");
    made.gzip = compression == "gzip";
    if (!compression.empty() && !made.gzip && compression != "none") {
        refuse(from.name(), "is neither gzip nor none: '" + compression + "'", "Set one of them");
    }
}

void readLimits(Variables& from, OtlpSettings& made) {
    const auto millis = [&](const std::string& value, std::chrono::milliseconds otherwise) {
        return std::chrono::milliseconds(
            from.number(value, 1, static_cast<std::size_t>(otherwise.count())));
    };
    made.timeout = millis(from.of("TIMEOUT"), made.timeout);
    made.patience = millis(from.plain("OTEL_BSP_EXPORT_TIMEOUT"), made.patience);
    made.delay = millis(from.plain("OTEL_BSP_SCHEDULE_DELAY"), made.delay);
    made.queue = from.number(from.plain("OTEL_BSP_MAX_QUEUE_SIZE"), 1, made.queue);
    made.batch = from.number(from.plain("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 1, made.batch);
    made.batch = std::min(made.batch, made.queue);
}

Resource resourceOf(Variables& from) {
    Resource all;
    const auto set = [&](const std::string& key, const std::string& value) {
        std::erase_if(all, [&](const auto& each) { return each.first == key; });
        all.emplace_back(key, value);
    };
    set("service.name", "hearth");
    set("service.version", kHearthVersion);
    const std::string value = from.plain("OTEL_RESOURCE_ATTRIBUTES");
    for (const auto& [key, told] : pairs(from.name(), value)) set(key, told);
    const std::string name = from.plain("OTEL_SERVICE_NAME");
    if (!name.empty()) set("service.name", name);
    return all;
}

}  // namespace

std::optional<OtlpSettings> otlpSettings(const Environment& variable) {
    Variables from(variable);
    if (!sends(from)) return std::nullopt;
    OtlpSettings made;
    made.url = urlOf(from);
    if (made.url.empty()) return std::nullopt;
    const std::string headers = from.of("HEADERS");
    made.headers = pairs(from.name(), headers);
    readProtocol(from, made);
    made.authority = from.of("CERTIFICATE");
    made.certificate = from.of("CLIENT_CERTIFICATE");
    made.key = from.of("CLIENT_KEY");
    readLimits(from, made);
    made.resource = resourceOf(from);
    const std::string sampler = from.plain("OTEL_TRACES_SAMPLER");
    made.sampler = Sampler::of(sampler.empty() ? "parentbased_always_on" : sampler,
                               from.plain("OTEL_TRACES_SAMPLER_ARG"));
    return made;
}

}  // namespace hearth::metrics
