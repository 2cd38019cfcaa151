#pragma once

#include <functional>
#include <string>

#include "api/cli/remote/Remote.h"

namespace hearth::cli {

/// A pool of the benchmark's own, with the template of the measured pool and other sizes. The
/// destructor deletes it and waits until its sandboxes are gone. Needs an operator's token. Not
/// thread-safe. `remote` must outlive it.
class BenchPool {
public:
    struct Shape {
        unsigned warm = 1;     ///< kept ready
        unsigned members = 1;  ///< including the claimed ones
        /// Merged into spec.template, e.g. {"prewarm": …}.
        std::string template_patch = {};
    };

    /// Declares the pool; waitUntilWarm() waits for its sandboxes. A pool has at most
    /// kMostMembers.
    BenchPool(Remote& remote, const Json& like, const Shape& shape);
    ~BenchPool();
    BenchPool(const BenchPool&) = delete;
    BenchPool& operator=(const BenchPool&) = delete;

    static constexpr unsigned kMostMembers = 1000;

    const std::string& name() const { return name_; }
    /// Waits until all its sandboxes are ready. Throws Error(Deadline) with the pool's own reason
    /// if no further one became ready for a minute, and BenchStopped.
    void waitUntilWarm();
    /// Ends every sandbox. The server then fills the pool again.
    void drain();
    /// Returns whether all imports that its template asks for succeeded.
    bool prewarmed();
    /// Returns the ids of the ready sandboxes.
    std::vector<std::string> readySandboxes();

private:
    Remote& remote_;
    std::string name_;
    unsigned warm_;
};

/// Returns the manifest of the measured pool, as the server has it.
Json poolManifest(Remote& remote, const std::string& pool);
/// Waits until this many sandboxes of the pool are ready, like BenchPool::waitUntilWarm.
void waitUntilReady(Remote& remote, const std::string& pool, unsigned ready);
/// Waits until the pool's refill has ended: its warm sandboxes are ready, and none is being made or
/// removed. Waits only a few seconds, as others may use the pool. False if it did not come to rest.
bool waitUntilAtRest(Remote& remote, const std::string& pool);
std::vector<std::string> readySandboxes(Remote& remote, const std::string& pool);

/// Returns the manifest that BenchPool declares. Pure.
Json benchManifest(const std::string& name, const Json& like, const BenchPool::Shape& shape);

}  // namespace hearth::cli
