#include "pool/runtime/kubernetes/client/ClusterConfig.h"

#include <fstream>
#include <iterator>

#include "base/http/Url.h"

namespace hearth::pool::kubernetes {

std::optional<ClusterConfig> inClusterConfig(const Variables& variables,
                                             const std::string& folder) {
    const std::optional<std::string> host = variables("KUBERNETES_SERVICE_HOST");
    const std::optional<std::string> port = variables("KUBERNETES_SERVICE_PORT");
    if (!host || host->empty() || !port || port->empty()) return std::nullopt;
    const bool six = host->find(':') != std::string::npos && !host->starts_with('[');
    ClusterConfig config{.url = "https://" + (six ? "[" + *host + "]" : *host) + ":" + *port,
                         .authority = {.file = folder + "/ca.crt"},
                         .token = {.file = folder + "/token"}};
    std::ifstream in(folder + "/namespace", std::ios::binary);
    const std::string ns{std::istreambuf_iterator<char>(in), {}};
    const std::string_view trimmed = trim(std::string_view(ns).substr(0, ns.find('\n')));
    if (!trimmed.empty()) config.ns = trimmed;
    return config;
}

}  // namespace hearth::pool::kubernetes
