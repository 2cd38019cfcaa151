#include "api/serve/standby/Standby.h"

#include <optional>
#include <utility>

#include "api/http/front/OperationsServer.h"
#include "api/serve/standby/Relay.h"
#include "base/Error.h"

namespace hearth::program {

bool standBy(const cli::ServeConfig& config, Leadership& leadership,
             controller::SharedHistory* shared, const Reports& reports, const SignalThread& signals,
             const std::function<void(const std::string& why)>& deposed) {
    std::optional<controller::HistoryFollower> follower;
    if (shared != nullptr) follower.emplace(*shared, reports.log);
    Relay relay(*config.listen, reports.log);
    api::OperationsServer operations(
        *config.ops_listen, reports.metrics, reports.log, reports.clock, [&relay, &signals] {
            if (signals.leaving()) return std::pair(false, std::string("stopping"));
            const std::string leader = relay.target();
            return leader.empty() ? std::pair(false, std::string("no replica leads"))
                                  : std::pair(true, "standing by for " + leader);
        });
    reports.metrics.leader(false, *config.lease);
    operations.start();
    relay.start();
    const bool leads = leadership.awaitTurn(signals.ended(), [&](const std::string& leader) {
        reports.log.info("leader.followed", {{"address", leader}});
        relay.aim(leader);
    });
    if (leads) {
        // Logged before the steps below, so that the log shows whether election or steps take long.
        reports.log.info("leader.won", {{"term", leadership.term()}});
        leadership.keep(deposed);
    }
    follower.reset();
    relay.stop();
    operations.stop();
    if (!leads) return false;
    reports.metrics.leader(true, *config.lease);
    reports.log.info("leader.elected", {{"term", leadership.term()}});
    return true;
}

std::unique_ptr<controller::SharedHistory> sharedHistory(const cli::ServeConfig& config,
                                                         const Leadership* leadership,
                                                         const std::string& data_file,
                                                         metrics::Log& log) {
    const std::string& volume = *config.shared_volume;
    if (volume.empty() || leadership == nullptr) return nullptr;
    return std::make_unique<controller::SharedHistory>(
        volume + "/history", data_file, [leadership] { return leadership->sure(); }, log);
}

}  // namespace hearth::program
