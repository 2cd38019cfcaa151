#include <catch2/catch.hpp>
#include <map>

#include "base/Error.h"
#include "metrics/trace/otlp/OtlpSettings.h"

namespace hearth::metrics {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<OtlpSettings> settingsOf(const Variables& variables) {
    return otlpSettings([&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::string() : found->second;
    });
}

std::string settingsRefusal(Variables variables) {
    variables.emplace("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    try {
        settingsOf(variables);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("traces are sent only where the environment names a place for them") {
    CHECK_FALSE(settingsOf({}));
    CHECK_FALSE(settingsOf({{"OTEL_TRACES_EXPORTER", "otlp"}}));
    const Variables there{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}};
    CHECK(settingsOf(there));
    for (const auto& [name, value] :
         Variables{{"OTEL_SDK_DISABLED", "TRUE"}, {"OTEL_TRACES_EXPORTER", "none"}}) {
        Variables off = there;
        off[name] = value;
        CHECK_FALSE(settingsOf(off));
    }
}

TEST_CASE(
    "an endpoint for all signals gets the path of traces, and one for traces stays as it is") {
    const auto url = [](const Variables& of) { return settingsOf(of)->url; };
    CHECK(url({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}}) == "http://c:4318/v1/traces");
    CHECK(url({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/"}}) == "https://c/otlp/v1/traces");
    CHECK(url({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
               {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/in"}}) == "http://t:1/in");
}

TEST_CASE(
    "variables for traces come before those for all signals, and absent ones are the standard's") {
    const OtlpSettings plain = *settingsOf({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}});
    CHECK_FALSE(plain.gzip);
    CHECK(plain.timeout == std::chrono::seconds(10));
    CHECK(plain.patience == std::chrono::seconds(30));
    CHECK(plain.delay == std::chrono::seconds(5));
    CHECK(plain.queue == 2'048);
    CHECK(plain.batch == 512);
    const OtlpSettings set = *settingsOf({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
                                          {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"},
                                          {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                                          {"OTEL_EXPORTER_OTLP_TIMEOUT", "70"},
                                          {"OTEL_EXPORTER_OTLP_HEADERS", "a=b%3D, c = d"},
                                          {"OTEL_BSP_MAX_QUEUE_SIZE", "10"}});
    CHECK(set.gzip);
    CHECK(set.timeout == std::chrono::milliseconds(70));
    CHECK(set.headers == std::vector<std::pair<std::string, std::string>>{{"a", "b="}, {"c", "d"}});
    CHECK(set.queue == 10);
    CHECK(set.batch == 10);  // limited to the queue's size
}

TEST_CASE("the server is named by the standard's variables") {
    const auto named = [](Variables more, const std::string& key) {
        more.emplace("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        std::string found;
        std::size_t count = 0;
        const OtlpSettings settings = *settingsOf(more);
        for (const auto& [name, text] : settings.resource) {
            if (name != key) continue;
            found = text;
            ++count;
        }
        CHECK(count <= 1);
        return found;
    };
    CHECK(named({}, "service.name") == "hearth");
    CHECK(named({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,k8s.pod.name=p"}}, "service.name") ==
          "a");
    CHECK(named({{"OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=p%2C1"}}, "k8s.pod.name") == "p,1");
    CHECK(named({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a"}, {"OTEL_SERVICE_NAME", "b"}},
                "service.name") == "b");
}

TEST_CASE("a variable that cannot be used is refused by its name") {
    for (const auto& [name, value] : Variables{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                                               {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
                                               {"OTEL_EXPORTER_OTLP_COMPRESSION", "br"},
                                               {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
                                               {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1s"},
                                               {"OTEL_BSP_SCHEDULE_DELAY", "-1"},
                                               {"OTEL_TRACES_EXPORTER", "jaeger"},
                                               {"OTEL_TRACES_SAMPLER", "sometimes"},
                                               {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c:4317"}}) {
        CAPTURE(name, value);
        CHECK(settingsRefusal({{name, value}}).starts_with(name));
    }
    const std::string told = settingsRefusal({{"OTEL_EXPORTER_OTLP_HEADERS", "s3cret"}});
    CHECK(told.starts_with("OTEL_EXPORTER_OTLP_HEADERS"));
    CHECK(told.find("s3cret") == std::string::npos);
}

}  // namespace hearth::metrics
