#include "api/serve/standby/Standby.h"

#include <thread>
#include <utility>

#include "api/http/front/OperationsServer.h"
#include "api/serve/standby/Relay.h"
#include "base/Mutex.h"

namespace hearth::program {
namespace {

/// How soon a change of the leader is followed; no call to the API server comes of it.
constexpr auto kLook = std::chrono::milliseconds(200);

}  // namespace

bool standBy(const cli::ServeConfig& config, Leadership& leadership, const Reports& reports,
             const std::stop_token& stop) {
    Relay relay(*config.listen, reports.log);
    api::OperationsServer operations(
        *config.ops_listen, reports.metrics, reports.log, reports.clock, [&] {
            const std::string leader = leadership.leader();
            return leader.empty() ? std::pair(false, std::string("no replica leads"))
                                  : std::pair(true, "standing by for " + leader);
        });
    reports.metrics.leader(false);
    operations.start();
    relay.start();
    bool leads = false;
    {
        const std::jthread follower([&](const std::stop_token& done) {
            Mutex mutex;
            StoppableCondition tick;
            std::string before;
            while (!done.stop_requested()) {
                const std::string leader = leadership.leader();
                if (leader != before) {
                    reports.log.info("leader.followed", {{"address", leader}});
                    relay.aim(leader);
                    before = leader;
                }
                const MutexLock lock(mutex);
                tick.waitFor(mutex, done, kLook, [] { return false; });
            }
        });
        leads = leadership.awaitTurn(stop);
    }
    relay.stop();
    operations.stop();
    if (!leads) return false;
    reports.metrics.leader(true);
    reports.log.info("leader.elected", {{"term", leadership.term()}});
    return true;
}

}  // namespace hearth::program
