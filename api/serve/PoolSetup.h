#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "api/config/ServeConfig.h"
#include "api/kubernetes/PoolObjects.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/StartupGate.h"
#include "api/serve/process/Terminal.h"
#include "controller/ControlPlane.h"

namespace hearth::program {

/// The pools at a start: declares those of files and of a cluster's objects, and prepares their
/// images. For the thread that starts the server.
class PoolSetup {
public:
    /// `ended`: the server is to end. The references must outlive it.
    PoolSetup(const cli::ServeConfig& config, controller::ControlPlane& plane, StartupGate& gate,
              const Terminal& terminal, std::stop_token ended);

    /// Declares the pools of files.
    void declareFiles(const PrivilegedSetup& setup);
    /// Runs before recovery looks at earlier sandboxes, because sandboxes of a pool that is not
    /// declared would be ended.
    void followObjects();
    /// Call before the pools end.
    void stopObjects();
    /// Prepares the pools' images; the server is not ready meanwhile. A pool whose image cannot be
    /// prepared is Degraded, with the reason.
    void prepareImages();
    /// Warns if the default pool is missing. It may be declared later; until then requests without
    /// a pool are refused.
    void warnOfMissingDefault() const;
    /// Returns the name of the default pool if it is not declared; else "".
    std::string missingDefault() const;
    /// True if a pool is declared and is not being deleted.
    bool anyDeclared() const;

private:
    /// Declares a pool. A file overrides a pool that a client applied later; the log reports it.
    /// A disk that refuses writes does not stop the server: it serves the stored pools.
    void declare(const controller::Pool& pool);
    /// Turns the objects' pools into clients' pools, because otherwise they could not be changed.
    void adoptPoolsOfObjects();
    void prepareImage(const controller::Pool& pool);

    const cli::ServeConfig& config_;
    controller::ControlPlane& plane_;
    pool::ContainerRuntime& runtime_;
    metrics::Log& log_;
    const Clock& clock_;
    StartupGate& gate_;
    const Terminal& terminal_;
    const std::stop_token ended_;
    std::unique_ptr<kubernetes::PoolObjects> objects_;  ///< null: only files and clients
};

}  // namespace hearth::program
