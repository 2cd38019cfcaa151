#pragma once

#include <string>
#include <vector>

#include "api/cli/ServeConfig.h"
#include "api/http/Front.h"
#include "base/Instance.h"
#include "controller/OnDemandPools.h"
#include "controller/TokenStore.h"
#include "controller/broker/Broker.h"
#include "metrics/Log.h"

namespace hearth::program {

// What each part of the server is told, from the configuration. Pure but for brokerOptions().

metrics::LogLevel logLevel(const std::string& name);
controller::OnDemandRules onDemandRules(const cli::ServeConfig& config);
std::vector<controller::ConfiguredToken> configuredTokens(const cli::ServeConfig& config);
api::FrontOptions frontOptions(const cli::ServeConfig& config);
/// Throws cli::UsageError if the secrets or the authorities cannot be read by who asks.
broker::BrokerOptions brokerOptions(const cli::ServeConfig& config, const Instance& instance,
                                    const std::string& secret_key);

}  // namespace hearth::program
