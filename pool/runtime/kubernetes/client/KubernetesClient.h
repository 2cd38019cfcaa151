#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "pool/runtime/kubernetes/client/ClusterAccess.h"
#include "pool/runtime/kubernetes/client/KubeError.h"
#include "pool/runtime/kubernetes/client/KubeResource.h"

namespace hearth::pool::kubernetes {

/// How long one call may take, all of it, and what else ends it.
struct CallLimits {
    std::chrono::milliseconds timeout{30'000};
    const std::atomic<bool>* stop = nullptr;  ///< ends the call soon after it becomes true
};

/// Restrictions and version of a list.
struct ListQuery {
    std::string label_selector = {};
    std::string field_selector = {};
    unsigned limit = 0;              ///< objects on a page; 0: all at once
    std::string continue_from = {};  ///< ObjectPage::next of the page before
    /// Empty: consistent; "0": whatever the server has cached; else not older than this.
    std::string resource_version = {};
};

/// One page of a list.
struct ObjectPage {
    std::vector<Json> items;
    std::string resource_version;  ///< of the list: a watch begins here
    std::string next;              ///< empty on the last page
};

/// Formats of a patch. Custom resources take these two; a strategic merge they refuse (415).
enum class PatchKind { Merge, Json };

struct DeleteOptions {
    std::string uid = {};               ///< only this object, not its successor of the same name
    std::string resource_version = {};  ///< only if it is unchanged
    std::string propagation = {};       ///< "Background", "Foreground", "Orphan"; empty: usual
    std::optional<std::int64_t> grace_seconds = {};
};

/// The REST part of the Kubernetes API. Each call blocks until its answer, failure or time limit; a
/// failure is a value. After a 401 the credentials are read again and the call is repeated once;
/// nothing else is repeated here. Thread-safe; a few connections are kept open and shared.
class KubernetesClient {
public:
    /// `access` must outlive it. More than `connections` calls at once wait for each other.
    explicit KubernetesClient(ClusterAccess& access, unsigned connections = 4);
    ~KubernetesClient();
    KubernetesClient(const KubernetesClient&) = delete;
    KubernetesClient& operator=(const KubernetesClient&) = delete;

    KubeResult<Json> get(const KubeResource& resource, const std::string& name,
                         const CallLimits& limits = {});
    /// One page.
    KubeResult<ObjectPage> list(const KubeResource& resource, const ListQuery& query,
                                const CallLimits& limits = {});
    /// With metadata.name, or generateName. If the error is ambiguous, get() by name tells.
    KubeResult<Json> create(const KubeResource& resource, const Json& object,
                            const CallLimits& limits = {});
    /// As create(), with every check of the server, and nothing is made.
    KubeResult<Json> tryCreate(const KubeResource& resource, const Json& object,
                               const CallLimits& limits = {});
    /// Of something below an object: "token" of a ServiceAccount, "eviction" of a Pod.
    KubeResult<Json> createBelow(const KubeResource& resource, const std::string& name,
                                 const std::string& subresource, const Json& object,
                                 const CallLimits& limits = {});
    /// Replaces the object of metadata.name, if metadata.resourceVersion is still its version. A
    /// foreign object is patched instead: replacing it drops fields that are not known here.
    KubeResult<Json> replace(const KubeResource& resource, const Json& object,
                             const CallLimits& limits = {});
    /// The same with its subresource status only.
    KubeResult<Json> replaceStatus(const KubeResource& resource, const Json& object,
                                   const CallLimits& limits = {});
    /// `patch` as its kind says: an object, or a list of operations.
    KubeResult<Json> patch(const KubeResource& resource, const std::string& name, PatchKind kind,
                           const Json& patch, const std::string& subresource = {},
                           const CallLimits& limits = {});
    /// Gives the object, which finalizers or grace may keep for a while, or a Status.
    KubeResult<Json> remove(const KubeResource& resource, const std::string& name,
                            const DeleteOptions& options = {}, const CallLimits& limits = {});
    /// Any other path, for example "/version".
    KubeResult<Json> getPath(const std::string& target, const CallLimits& limits = {});

    ClusterAccess& access() noexcept { return access_; }
    /// False after a server has refused to send a list as a stream (older than 1.27, or switched
    /// off): none is asked for again.
    bool streamsLists() const noexcept { return streams_lists_; }
    void noStreamedLists() noexcept { streams_lists_ = false; }

private:
    struct Connection;
    struct Call;

    KubeResult<Json> run(const Call& call, const CallLimits& limits);
    KubeResult<Json> put(const KubeResource& resource, const Json& object,
                         const std::string& subresource, const CallLimits& limits);
    /// Throws ExchangeError.
    http::ClientResponse send(const Call& call, const ClusterCredentials& credentials,
                              TimePoint until, const CallLimits& limits);
    std::unique_ptr<Connection> borrow(const ClusterCredentials& credentials, TimePoint until,
                                       const CallLimits& limits);
    void giveBack(std::unique_ptr<Connection> connection);

    ClusterAccess& access_;
    const unsigned most_;
    std::atomic<bool> streams_lists_{true};
    Mutex mutex_;
    Condition returned_;
    std::vector<std::unique_ptr<Connection>> idle_ HEARTH_GUARDED_BY(mutex_);
    unsigned lent_ HEARTH_GUARDED_BY(mutex_) = 0;
};

/// The ownerReferences entry of an object; it does not delay the owner's end.
KubeResult<Json> ownerReference(KubernetesClient& client, const OwnerName& owner);

/// How documents of the API server are read: larger and deeper than those of our own clients.
JsonLimits kubeJsonLimits();

}  // namespace hearth::pool::kubernetes
