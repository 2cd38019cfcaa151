#pragma once

#include <string>

#include "api/config/ServeConfig.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/RevocationStore.h"
#include "api/serve/standby/Standby.h"
#include "controller/journal/DatabaseFile.h"
#include "controller/journal/DiskReserve.h"
#include "controller/journal/Journal.h"
#include "controller/journal/SharedHistory.h"
#include "controller/store/TokenStore.h"

namespace hearth::program {

/// This replica's part in leading; both are null if there is only one replica.
struct Replica {
    /// This replica's term as the leader; 0 if there is only one replica.
    std::uint64_t term() const { return leadership == nullptr ? 0 : leadership->term(); }

    Leadership* leadership = nullptr;
    controller::SharedHistory* shared = nullptr;  ///< null if each replica has its own history
};

/// The state that a server keeps on disk. The references must outlive it.
struct ServerState {
    ServerState(const cli::ServeConfig& config, const PrivilegedSetup& setup,
                const Replica& replica, const Reports& reports);

    const controller::DiskReserve reserve;  ///< on the state's disk
    controller::DatabaseFile database;
    controller::TokenHistory token_history;
    controller::Journal journal;
    controller::TokenStore tokens;
    RevocationStore revocations;
    /// Made last of the state: it marks the instance as used, after the token history is written.
    const std::string secret_key;
};

}  // namespace hearth::program
