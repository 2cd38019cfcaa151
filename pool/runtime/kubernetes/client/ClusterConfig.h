#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hearth::pool::kubernetes {

/// A secret or a certificate: a file, which is read again from time to time, or the text itself.
struct CredentialSource {
    std::string file = {};
    std::string text = {};  ///< counts only without a file

    bool empty() const noexcept { return file.empty() && text.empty(); }
};

/// The API server's address, and who we are to it, as configured.
struct ClusterConfig {
    std::string url;                  ///< "https://10.96.0.1:443", "https://[fd00::1]:6443"
    CredentialSource authority = {};  ///< PEM; empty: the authorities of this machine
    CredentialSource certificate = {};
    CredentialSource key = {};
    CredentialSource token = {};
    std::string ns = "default";  ///< the namespace to work in
    std::string proxy = {};      ///< URL of an HTTP proxy; empty: none, whatever the environment
};

/// Reads a variable of the environment; nullopt where it is not set.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Where kubelet mounts token, ca.crt and namespace of a Pod's ServiceAccount.
inline constexpr const char* kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// Of the Pod that this process runs in: KUBERNETES_SERVICE_HOST and _PORT, and the files of its
/// ServiceAccount. nullopt where this is no Pod.
std::optional<ClusterConfig> inClusterConfig(const Variables& variables,
                                             const std::string& folder = kServiceAccountFolder);

/// Of a kubeconfig file: its current context, or `context`. Throws Error(InvalidArgument), with the
/// file and a hint, for what is missing and for what Hearth does not do: exec plugins, passwords,
/// and servers that are not verified.
ClusterConfig kubeconfig(const std::string& path, const std::string& context = {});

}  // namespace hearth::pool::kubernetes
