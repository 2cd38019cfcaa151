#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hearth::pool::kubernetes {

/// A secret or a certificate: a file, which is read again periodically, or the text itself.
struct CredentialSource {
    std::string file = {};
    std::string text = {};  ///< ignored if there is a file

    bool empty() const noexcept { return file.empty() && text.empty(); }
};

/// The API server's address and the credentials for it, as configured.
struct ClusterConfig {
    std::string url;                  ///< "https://10.96.0.1:443", "https://[fd00::1]:6443"
    CredentialSource authority = {};  ///< PEM; empty: the machine's authorities
    CredentialSource certificate = {};
    CredentialSource key = {};
    CredentialSource token = {};
    std::string ns = "default";  ///< the namespace to work in
    std::string proxy = {};      ///< URL of an HTTP proxy; empty: none, environment ignored
};

/// Reads an environment variable; nullopt if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Where kubelet mounts the token, ca.crt and namespace of a Pod's ServiceAccount.
inline constexpr const char* kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// The configuration in the Pod of this process: KUBERNETES_SERVICE_HOST and _PORT, and the files
/// of its ServiceAccount. nullopt outside of a Pod.
std::optional<ClusterConfig> inClusterConfig(const Variables& variables,
                                             const std::string& folder = kServiceAccountFolder);

/// The configuration in a kubeconfig file: its current context, or `context`. Throws
/// Error(InvalidArgument), with the file and a hint, for missing parts and for features that Hearth
/// lacks: exec plugins, passwords, and unverified servers.
ClusterConfig kubeconfig(const std::string& path, const std::string& context = {});

}  // namespace hearth::pool::kubernetes
