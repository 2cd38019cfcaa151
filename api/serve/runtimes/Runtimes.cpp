#include "api/serve/runtimes/Runtimes.h"

#include <array>

namespace hearth::program {
namespace {

struct Offered {
    cli::RuntimeChoice choice;
    std::unique_ptr<RuntimeFactory> (*make)();
};

constexpr auto kOffered = std::to_array<Offered>({
#define HEARTH_RUNTIME(name, word) {cli::RuntimeChoice::name, make##name##Factory},
#include "api/config/Runtimes.def"
#undef HEARTH_RUNTIME
});

}  // namespace

RuntimeDecision decideRuntime(const cli::ServeConfig& config) {
    std::string others;
    for (const auto& [choice, make] : kOffered) {
        std::unique_ptr<RuntimeFactory> factory = make();
        if (*config.runtime == choice) {
            return {choice, config.runtime.origin + " says so", std::move(factory)};
        }
        if (*config.runtime != cli::RuntimeChoice::Auto) continue;
        const RuntimeFit fit = factory->fit(config);
        if (fit.fits) {
            return {choice, others + (others.empty() ? "" : ", and ") + fit.why,
                    std::move(factory)};
        }
        others += (others.empty() ? "" : "; ") + fit.why;
    }
    return {kOffered.front().choice, "no other runtime is available: " + others,
            kOffered.front().make()};
}

}  // namespace hearth::program
