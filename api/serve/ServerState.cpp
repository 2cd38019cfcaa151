#include "api/serve/ServerState.h"

#include "api/serve/PartOptions.h"
#include "controller/store/SecretKey.h"
#include "controller/store/StateFiles.h"

namespace hearth::program {
namespace {

/// Makes this replica's history the one that the others follow from now on.
controller::SharedHistory* ledHistory(const Replica& replica, const std::string& path) {
    if (replica.shared == nullptr) return nullptr;
    controller::Database database(path);
    replica.shared->lead(database, replica.term());
    return replica.shared;
}

}  // namespace

ServerState::ServerState(const cli::ServeConfig& config, const PrivilegedSetup& setup,
                         const Replica& replica, const Reports& reports)
    : reserve(stateReserve(config, setup.instance)),
      database(controller::databasePath(setup.instance.data_dir), setup.used_before, reports.log,
               reports.metrics),
      token_history(controller::tokenHistoryPath(setup.instance.data_dir),
                    setup.used_before && database.begunAnew()),
      journal(database.path(), reports.clock, reports.log,
              {.reserve = &reserve,
               .metrics = &reports.metrics,
               .file = &database,
               .shared = ledHistory(replica, database.path())}),
      tokens(journal, token_history, configuredTokens(*config.tokens), reports.clock,
             *config.open_loopback),
      revocations(journal, reports.clock),
      secret_key((*config.keys).empty()
                     ? controller::keptSecretKey(controller::secretKeyPath(setup.instance.data_dir),
                                                 journal)
                     : controller::sharedKey(*config.keys, "key")) {}

}  // namespace hearth::program
