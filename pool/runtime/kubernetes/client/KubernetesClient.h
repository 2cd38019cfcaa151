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

/// The time limit of one whole call, and a flag that ends it earlier.
struct CallLimits {
    std::chrono::milliseconds timeout{30'000};
    const std::atomic<bool>* stop = nullptr;  ///< ends the call soon after it becomes true
};

/// Restrictions and version of a list.
struct ListQuery {
    std::string label_selector = {};
    std::string field_selector = {};
    unsigned limit = 0;              ///< objects per page; 0: all at once
    std::string continue_from = {};  ///< ObjectPage::next of the previous page
    /// Empty: consistent; "0": anything in the server's cache; else at least this version.
    std::string resource_version = {};
};

/// One page of a list.
struct ObjectPage {
    std::vector<Json> items;
    std::string resource_version;  ///< the list's version: a watch begins here
    std::string next;              ///< empty on the last page
};

/// Formats of a patch. Custom resources accept these two and refuse a strategic merge (415).
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
    /// `access` must outlive it. More than `connections` concurrent calls wait for each other.
    explicit KubernetesClient(ClusterAccess& access, unsigned connections = 4);
    ~KubernetesClient();
    KubernetesClient(const KubernetesClient&) = delete;
    KubernetesClient& operator=(const KubernetesClient&) = delete;

    KubeResult<Json> get(const KubeResource& resource, const std::string& name,
                         const CallLimits& limits = {});
    /// Returns one page.
    KubeResult<ObjectPage> list(const KubeResource& resource, const ListQuery& query,
                                const CallLimits& limits = {});
    /// Needs metadata.name, or generateName. After an ambiguous error, check with get() by name.
    KubeResult<Json> create(const KubeResource& resource, const Json& object,
                            const CallLimits& limits = {});
    /// Like create(), with every check of the server, but nothing is created.
    KubeResult<Json> tryCreate(const KubeResource& resource, const Json& object,
                               const CallLimits& limits = {});
    /// Creates something below an object: "token" of a ServiceAccount, "eviction" of a Pod.
    KubeResult<Json> createBelow(const KubeResource& resource, const std::string& name,
                                 const std::string& subresource, const Json& object,
                                 const CallLimits& limits = {});
    /// Replaces the object of metadata.name, if metadata.resourceVersion is still its version. An
    /// object that others define is patched instead: replacing it drops unknown fields.
    KubeResult<Json> replace(const KubeResource& resource, const Json& object,
                             const CallLimits& limits = {});
    /// The same for its subresource status only.
    KubeResult<Json> replaceStatus(const KubeResource& resource, const Json& object,
                                   const CallLimits& limits = {});
    /// `patch` has the form of its kind: an object, or a list of operations.
    KubeResult<Json> patch(const KubeResource& resource, const std::string& name, PatchKind kind,
                           const Json& patch, const std::string& subresource = {},
                           const CallLimits& limits = {});
    /// Returns the object, which finalizers or grace may keep for a while, or a Status.
    KubeResult<Json> remove(const KubeResource& resource, const std::string& name,
                            const DeleteOptions& options = {}, const CallLimits& limits = {});
    /// Reads any other path, for example "/version".
    KubeResult<Json> getPath(const std::string& target, const CallLimits& limits = {});

    ClusterAccess& access() noexcept { return access_; }
    /// False after a server has refused to send a list as a stream (older than 1.27, or switched
    /// off); streams are then not requested again.
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
Json referenceTo(const Json& object);
/// The same for an object that is read first.
KubeResult<Json> ownerReference(KubernetesClient& client, const OwnerName& owner);

/// Limits for documents of the API server: larger and deeper than those of Hearth's clients.
JsonLimits kubeJsonLimits();

}  // namespace hearth::pool::kubernetes
