#pragma once

#include <functional>
#include <string>
#include <utility>

#include "api/http/front/Front.h"

namespace hearth::api {

/// Returns true if the server can take work now, else the reason (one line without secrets).
using ReadyCheck = std::function<std::pair<bool, std::string>()>;

/// Answers /metrics, /healthz and /readyz; GET and HEAD only.
class OperationsHandler final : public Handler {
public:
    /// `ready` is called by several threads and must not block.
    OperationsHandler(metrics::Metrics& metrics, ReadyCheck ready)
        : metrics_(metrics), ready_(std::move(ready)) {}

    Response handle(Request& request) override;

private:
    metrics::Metrics& metrics_;
    ReadyCheck ready_;
};

/// The operations listener: it has its own threads, so that busy users starve no probe, and no Host
/// check, since probes and scrapers use addresses.
class OperationsServer {
public:
    /// `listen` is "host:port". The other arguments must outlive it.
    OperationsServer(const std::string& listen, metrics::Metrics& metrics, metrics::Log& log,
                     const Clock& clock, ReadyCheck ready);

    void start() { front_.start(); }
    std::string address() const { return front_.address(); }
    std::uint16_t port() const { return front_.port(); }
    void stop() { front_.stop(); }

private:
    OperationsHandler handler_;
    Front front_;
};

}  // namespace hearth::api
