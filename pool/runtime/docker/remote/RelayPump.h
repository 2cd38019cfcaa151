#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "base/http/client/ClientConnection.h"
#include "pool/runtime/docker/remote/RawStream.h"

namespace hearth::pool::docker {

/// Turns Engine streams into descriptors: one thread copies the bytes of all relays between their
/// streams and socket pairs, whose other ends are used like an agent's own socket. A relay buffers
/// at most half a megabyte; a stalled reader stops only its own relay. Thread-safe.
class RelayPump {
public:
    RelayPump();
    /// Ends all relays.
    ~RelayPump();
    RelayPump(const RelayPump&) = delete;
    RelayPump& operator=(const RelayPump&) = delete;

    /// Returns the caller's end of a pair. Closing it ends the stream; the pair ends with the
    /// stream, or at invalid bytes. `early`: bytes that `decoder` has already returned.
    Fd carry(http::ClientConnection stream, RawStream decoder, std::string early);

private:
    class Link;

    void run(const std::stop_token& stop);
    /// Lets a link work, then watches its events; true if it should work again at once.
    bool serve(std::uint64_t id);
    std::shared_ptr<Link> find(std::uint64_t id);

    Fd epoll_;
    Fd wake_;
    Mutex mutex_;
    std::uint64_t next_id_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::unordered_map<std::uint64_t, std::shared_ptr<Link>> links_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::pool::docker
