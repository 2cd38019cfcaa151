#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pool/launcher/protocol/LauncherMessages.h"

namespace hearth::pool::launcher {

/// The launcher's places for operations under way. Each sort has its own, so none waits for
/// another.
enum class Slot : std::uint8_t {
    Create,
    Destroy,
    Narrow,  ///< a claim waits for it
    Look,    ///< lists, facts: nothing changes
    Image,   ///< images, layers, sweeps: minutes
};

/// Returns how many operations of a sort run at once. There are as many creates and destroys as the
/// reconciler has workers for them, so the launcher keeps its turns between pools.
std::size_t places(Slot slot);

/// How an operation is scheduled, by launcher and client alike.
struct OperationRules {
    const char* name;  ///< in the packet, logs and metrics
    Slot slot;
    std::chrono::seconds limit;     ///< then the launcher kills the operation
    std::chrono::seconds patience;  ///< then the client gives up; includes a wait before it
    std::string subject;            ///< sandbox, image or layer; empty: the machine
    bool alone = false;  ///< no other of its kind at once: one image unpacked, one sweep done
    /// Runs after the answers: yields to requests. For short operations only, because a late one
    /// keeps all others from yielding until it ends.
    bool behind = false;
};

OperationRules rulesOf(const RequestBody& body);
/// Returns the sandbox of an operation: no two run on one at once. Null for none.
const SandboxId* sandboxOf(const RequestBody& body);
/// An operation that runs in the launcher.
struct Underway {
    const RequestBody* body = nullptr;
    bool killed = false;  ///< its deadline has passed, and it does not end
    bool yields = false;  ///< it yields to requests now
};
/// True if an operation may be begun beside these, of which fewer than `yielding` must yield.
bool mayStart(const RequestBody& body, const std::vector<Underway>& underway,
              std::size_t yielding = std::numeric_limits<std::size_t>::max());
/// The names of all operations.
std::vector<std::string> operationNames();

}  // namespace hearth::pool::launcher
