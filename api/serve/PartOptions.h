#pragma once

#include <string>
#include <vector>

#include "api/config/ServeConfig.h"
#include "api/http/front/Front.h"
#include "base/host/Instance.h"
#include "controller/ControlPlane.h"
#include "controller/claims/OnDemandPools.h"
#include "controller/egress/EgressGateway.h"
#include "controller/journal/DiskReserve.h"
#include "controller/store/TokenStore.h"

namespace hearth::program {

// Translates the configuration into each part's options. Pure, except egressOptions() and
// planeOptions().

controller::OnDemandRules onDemandRules(const cli::ServeConfig& config);
egress::DenySet denySet(const cli::ServeConfig& config);
std::vector<controller::ConfiguredToken> configuredTokens(
    const std::vector<cli::TokenConfig>& tokens);
api::FrontOptions frontOptions(const cli::ServeConfig& config, const metrics::Tracer& tracer,
                               api::AccessLog& access);
/// Throws cli::UsageError if the caller cannot read the secrets or the authorities.
egress::EgressOptions egressOptions(const cli::ServeConfig& config, const Instance& instance,
                                    const std::string& secret_key);
/// Returns the control plane's options, as far as the configuration has them. Throws as
/// egressOptions().
controller::PlaneOptions planeOptions(const cli::ServeConfig& config, const Instance& instance,
                                      const std::string& secret_key);
/// Returns the reserve on the file system that holds the state.
controller::DiskReserve stateReserve(const cli::ServeConfig& config, const Instance& instance);
/// Returns the budget of the file system that holds the launcher's disk images of workspaces.
controller::DiskBudget workspaceBudget(const cli::ServeConfig& config, const Instance& instance);

}  // namespace hearth::program
