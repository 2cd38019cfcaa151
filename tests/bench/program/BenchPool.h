#pragma once

#include <functional>
#include <string>

#include "api/cli/remote/Remote.h"

namespace hearth::cli {

/// A pool of the benchmark's own: the template of the measured one, other sizes. The destructor
/// deletes it and waits until its sandboxes are gone. Needs a token of an operator. Not
/// thread-safe. `remote` must outlive it.
class BenchPool {
public:
    struct Shape {
        unsigned warm = 1;     ///< kept ready
        unsigned members = 1;  ///< with the claimed ones
        /// Put over spec.template, e.g. {"prewarm": …}.
        std::string template_patch = {};
    };

    /// Declares it; waitUntilWarm() waits for its sandboxes. The most that a pool may have is
    /// kMostMembers.
    BenchPool(Remote& remote, const Json& like, const Shape& shape);
    ~BenchPool();
    BenchPool(const BenchPool&) = delete;
    BenchPool& operator=(const BenchPool&) = delete;

    static constexpr unsigned kMostMembers = 1000;

    const std::string& name() const { return name_; }
    /// Until all its sandboxes are ready. Throws Error(Deadline) with the pool's own reason when
    /// no further one became ready for a minute; BenchStopped.
    void waitUntilWarm();
    /// Ends every sandbox; the server then fills the pool again.
    void drain();
    /// Whether everything its template asks to be imported could be.
    bool prewarmed();
    /// Ids of the sandboxes that are ready.
    std::vector<std::string> readySandboxes();

private:
    Remote& remote_;
    std::string name_;
    unsigned warm_;
};

/// The manifest of the pool that is measured, as the server has it.
Json poolManifest(Remote& remote, const std::string& pool);
/// Waits until that many of the pool's sandboxes are ready; as BenchPool::waitUntilWarm.
void waitUntilReady(Remote& remote, const std::string& pool, unsigned ready);
/// Waits until the pool's refill is over: what it keeps warm is ready, and none is being made or
/// removed. At most a few seconds, for who else uses the pool; false if it did not come to rest.
bool waitUntilAtRest(Remote& remote, const std::string& pool);
std::vector<std::string> readySandboxes(Remote& remote, const std::string& pool);

/// The manifest that BenchPool declares; pure.
Json benchManifest(const std::string& name, const Json& like, const BenchPool::Shape& shape);

}  // namespace hearth::cli
