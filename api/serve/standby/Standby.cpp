#include "api/serve/standby/Standby.h"

#include <utility>

#include "api/http/front/OperationsServer.h"
#include "api/serve/standby/Relay.h"

namespace hearth::program {

bool standBy(const cli::ServeConfig& config, Leadership& leadership, const Reports& reports,
             const std::stop_token& stop) {
    Relay relay(*config.listen, reports.log);
    api::OperationsServer operations(
        *config.ops_listen, reports.metrics, reports.log, reports.clock, [&relay] {
            const std::string leader = relay.target();
            return leader.empty() ? std::pair(false, std::string("no replica leads"))
                                  : std::pair(true, "standing by for " + leader);
        });
    reports.metrics.leader(false);
    operations.start();
    relay.start();
    const bool leads = leadership.awaitTurn(stop, [&](const std::string& leader) {
        reports.log.info("leader.followed", {{"address", leader}});
        relay.aim(leader);
    });
    relay.stop();
    operations.stop();
    if (!leads) return false;
    reports.metrics.leader(true);
    reports.log.info("leader.elected", {{"term", leadership.term()}});
    return true;
}

}  // namespace hearth::program
