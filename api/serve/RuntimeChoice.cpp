#include "api/serve/RuntimeChoice.h"

#include <unistd.h>

#include <chrono>
#include <exception>

#include "api/serve/Capture.h"
#include "base/Clock.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::cli {
namespace {

constexpr auto kAnswerWithin = std::chrono::seconds(2);

/// Why the embedded runtime cannot be driven; empty if it can.
std::string whyNotOci(const ServeConfig& config) {
    if (::geteuid() != 0) return "we are not root";
    if (!capture({*config.oci_runtime, "--version"})) {
        return "there is no " + *config.oci_runtime;
    }
    return {};
}

}  // namespace

RuntimeDecision decideRuntime(const ServeConfig& config) {
    if (*config.runtime != RuntimeChoice::Auto) {
        return {*config.runtime, config.runtime.origin + " says so"};
    }
    const std::string why_not = whyNotOci(config);
    if (why_not.empty()) return {RuntimeChoice::Oci, "we are root and the OCI runtime is there"};
    std::string docker;
    try {
        pool::docker::EngineClient engine(pool::docker::engineAddress());
        engine.ping(SystemClock().now() + kAnswerWithin);
        return {RuntimeChoice::Docker,
                why_not + ", and a Docker Engine answers at " + engine.address().text()};
    } catch (const std::exception& e) {
        docker = e.what();  // the answer to what is asked here
    }
    return {RuntimeChoice::Oci, "nothing else is there either: " + why_not + "; " + docker};
}

}  // namespace hearth::cli
