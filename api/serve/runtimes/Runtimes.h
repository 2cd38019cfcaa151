#pragma once

#include <memory>
#include <string>

#include "api/config/ServeConfig.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::program {

// The function that makes each runtime's factory.
#define HEARTH_RUNTIME(name, word) std::unique_ptr<RuntimeFactory> make##name##Factory();
#include "api/config/Runtimes.def"
#undef HEARTH_RUNTIME

/// The runtime that serves, and the reason in words.
struct RuntimeDecision {
    cli::RuntimeChoice choice = cli::RuntimeChoice::Oci;  ///< never Auto
    std::string reason;
    std::unique_ptr<RuntimeFactory> factory;
};

/// With `auto`, returns the first runtime that fits. If none fits, returns the first one: its error
/// says what is missing. May run programs and ask a daemon.
RuntimeDecision decideRuntime(const cli::ServeConfig& config);

/// Returns the cluster of the kubernetes runtime. Throws Error(InvalidArgument) if none is named.
pool::kubernetes::ClusterConfig clusterOf(const cli::ServeConfig& config);

}  // namespace hearth::program
