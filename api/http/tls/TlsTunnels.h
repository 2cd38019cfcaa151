#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/http/tls/ServerCertificate.h"
#include "api/http/tls/TlsTunnel.h"
#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Mutex.h"
#include "metrics/Metrics.h"

namespace hearth::api {

/// Speaks TLS with a front's clients, so that the front itself knows plain connections only: each
/// is one socket of a pair whose other one is here. The front decides their number and time limits.
/// One thread, which also watches the certificate's files. Thread-safe.
class TlsTunnels {
public:
    /// References outlive it. Throws as ServerCertificate.
    TlsTunnels(TlsFiles files, metrics::Metrics& metrics, metrics::Log& log, const Clock& clock);
    /// Ends the remaining connections, after a moment for last bytes.
    ~TlsTunnels();
    TlsTunnels(const TlsTunnels&) = delete;
    TlsTunnels& operator=(const TlsTunnels&) = delete;

    /// Takes a client's connection and returns the plain one: both non-blocking. Throws
    /// std::system_error if there is no descriptor left.
    Fd take(Fd client);

private:
    struct Held {
        std::unique_ptr<TlsTunnel> tunnel;
        bool leaving = false;
        std::uint32_t client_events = 0;
        std::uint32_t plain_events = 0;
    };
    struct Taken {
        Fd client;
        Fd plain;
    };

    void run(const std::stop_token& stop);
    void adopt();
    /// Runs once a second.
    void look(TimePoint now);
    void serve(std::uint64_t id, TimePoint now);
    void moveOn(std::uint64_t id, Held& held, TimePoint now);
    void drop(std::uint64_t id);
    void watch(std::uint64_t id, int fd, std::uint32_t& before, std::uint32_t wanted);
    void wake();

    metrics::Metrics& metrics_;
    metrics::Log& log_;
    const Clock& clock_;
    ServerCertificate certificate_;
    Fd epoll_;
    Fd bell_;
    Mutex mutex_;
    std::vector<Taken> taken_ HEARTH_GUARDED_BY(mutex_);
    // Used by the thread only:
    std::unordered_map<std::uint64_t, Held> held_;
    std::uint64_t next_id_ = 1;
    std::vector<std::uint64_t> again_;   ///< ids with more to move at once
    std::deque<std::uint64_t> leaving_;  ///< closed by the front, in order; some have ended
    std::size_t leaving_count_ = 0;      ///< ids in it that have not ended
    TimePoint looked_{};
    std::jthread thread_;  ///< last: it uses the others
};

}  // namespace hearth::api
