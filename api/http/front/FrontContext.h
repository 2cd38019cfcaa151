#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/SocketAddress.h>

#include <atomic>
#include <memory>
#include <stop_token>

#include "api/http/admission/HostRules.h"
#include "api/http/admission/NewsPlaces.h"
#include "api/http/admission/ProxyRules.h"
#include "api/http/front/Front.h"
#include "api/http/tls/TlsTunnels.h"
#include "base/tenants/TenantBytes.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth::api {

/// State that the parts of one front share.
struct FrontContext {
    const FrontOptions& options;
    Poco::Net::HTTPRequestHandlerFactory::Ptr handlers;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    const metrics::Tracer& tracer;
    HostRules rules;
    const Poco::Net::HTTPServerParams::Ptr params;  ///< `options` for Poco's handlers
    Poco::Net::SocketAddress bound{};               ///< where it listens
    std::unique_ptr<TlsTunnels> tls{};              ///< null: clients speak without TLS
    prometheus::Gauge& busy{metrics.httpWorkersBusy(options.name)};  ///< workers
    std::stop_source stop{};
    std::atomic<bool> stopping{false};
    std::atomic<std::size_t> connections{0};
    ProxyRules proxies{options.trusted_proxies};
    TenantPlaces streams{options.streams, options.streams_of_tenant};
    NewsPlaces news{{options.news, options.news_of_tenant, options.news_of_token}};
    TenantPlaces waits{options.waits, options.waits_of_tenant};
    TenantBytes waiting_bytes{options.waiting_bytes_of_tenant};
    TenantBytes unread_bytes{options.unread_bytes_of_tenant};
};

}  // namespace hearth::api
