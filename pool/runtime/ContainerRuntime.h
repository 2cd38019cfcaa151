#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// One sandbox as a runtime finds it, also after a restart of the server.
struct SandboxInfo {
    SandboxId id;
    bool alive = false;     ///< its first process (the agent) runs, or will: it is being started
    bool listening = true;  ///< its agent can be connected to
    std::map<std::string, std::string> labels;
    std::int64_t created_unix_ms = 0;
};

/// What a sandbox uses now, read on the host where tenant code cannot lie.
struct SandboxUsage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t processes = 0;
    std::uint64_t oom_kills = 0;
};

/// What isolation is really in force; shown by GET /v1/capabilities and `hearth doctor`.
struct RuntimeFacts {
    std::string name;     ///< "oci", "fake"
    std::string version;  ///< of the program that makes containers
    bool user_namespaces = false;
    bool seccomp = false;
    std::string cgroup;               ///< "v1", "v2", "none"
    std::vector<std::string> holes;   ///< known unfixed CVEs of that version
    std::vector<std::string> images;  ///< images that are ready
    /// What is known of some of them by their files alone.
    struct ImageNote {
        std::string digest;
        std::string reference;  ///< what it was imported as; may be empty
        std::vector<std::string> languages;
    };
    std::map<std::string, ImageNote> image_notes = {};
};

/// An image that a runtime has.
struct KnownImage {
    std::string pinned;  ///< means these bytes for ever; resolveImage() and pools take it
    std::string digest;  ///< "sha256:…", what the runtime tells images apart by
    std::vector<std::string> names;  ///< everything it is called: names, references
};

/// What is brought from a registry, and how.
struct ImageFetch {
    std::string reference;
    bool insecure =
        false;  ///< its registry may speak HTTP, or have a certificate that nobody knows
    std::chrono::seconds limit{900};
};

/// Where the time of fetching an image went.
struct ImageStages {
    std::chrono::nanoseconds pull{0};
    std::chrono::nanoseconds unpack{0};
};

/// Makes and ends sandboxes. Knows nothing of pools, tenants or HTTP. Thread-safe: calls for
/// different sandboxes may run at once, each blocks until done. Failures: Error for what a client
/// may see (DiskFull, Unsupported, NotFound for an image), std::system_error and
/// std::runtime_error for the rest.
class ContainerRuntime {
public:
    virtual ~ContainerRuntime() = default;

    /// How far a sandbox is when create() returns.
    enum class Started {
        Listening,  ///< its agent can be connected to
        Accepted,   ///< it will be: find() tells when, and news() that it is time to look
    };
    /// Starts a sandbox. Where that takes long the runtime only accepts it, so that no thread of
    /// the caller waits. On failure nothing of it is left.
    virtual Started create(const SandboxId& id, const SandboxSpec& spec) = 0;
    /// Ends the sandbox and removes everything of it; knows nothing but the id and may be repeated.
    virtual void destroy(const SandboxId& id) = 0;
    /// Everything of this instance that exists, whole or in pieces.
    virtual std::vector<SandboxInfo> list() = 0;
    /// One of list(), cheaper; nullopt if it is not there.
    virtual std::optional<SandboxInfo> find(const SandboxId& id) {
        for (SandboxInfo& info : list()) {
            if (info.id == id) return std::move(info);
        }
        return std::nullopt;
    }
    /// Who wants to hear that something about a sandbox has changed: it listens now, it has ended.
    /// Set once, before the first create(); called from threads of the runtime, perhaps too often.
    /// Only a runtime that sees its sandboxes from afar needs it: the end of a sandbox on this
    /// machine is the end of its agent's connection.
    virtual void onNews(const std::function<void(const SandboxId&)>& /*news*/) {}
    /// A new stream connection to the sandbox's agent, whoever carries it (a Unix socket, TCP); the
    /// runtime vouches for the peer. Throws if it is not there.
    virtual Fd connect(const SandboxId& id) = 0;
    /// nullopt if it is gone, or if the runtime cannot look into its machine.
    virtual std::optional<SandboxUsage> usage(const SandboxId& id) = 0;
    /// Whether the sandbox goes before the others of its machine when it wants the processor. One
    /// that nobody has claimed sleeps until a claim wakes it, which must not wait for its turn
    /// among busy ones; whoever has claimed it must not keep that. Cheap. False if it stayed as it
    /// was; a runtime that has no such thing, or whose sandbox is gone, has nothing to do.
    virtual bool goFirst(const SandboxId& id, bool first) {
        static_cast<void>(id), static_cast<void>(first);
        return true;
    }
    /// Holds a sandbox to the cpu, memory and processes of `limits`, by the kernel and from the
    /// return on; its disk stays as it is. Nothing is ever widened: limits that it does not have
    /// are the caller's mistake. A value where it uses as much already: it must then serve nobody,
    /// for it may have some of the limits. Error(NotFound) if it is gone.
    virtual std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) = 0;
    /// The manifest digest of an image that is ready to be used; unpacks it if need be (may take
    /// long). Throws Error(NotFound) with a hint for a name that is not there, Unavailable after
    /// stopFetching() if it was not ready.
    virtual std::string resolveImage(const std::string& name) = 0;
    /// Whether resolveImage() would have to unpack it first. Cheap; false where nobody knows.
    virtual bool mustUnpack(const std::string& name) {
        static_cast<void>(name);
        return false;
    }
    /// Whether `wanted` (of a request) is another name of `image` (of a pool): its name, a
    /// reference or a digest. Cheap once resolveImage() has seen `image`.
    virtual bool sameImage(const std::string& image, const std::string& wanted) {
        return image == wanted;
    }
    /// The image that `wanted` (a name, a reference, a digest) means here; nullopt if it is not
    /// here. Asks no registry.
    virtual std::optional<KnownImage> knownImage(const std::string& wanted) {
        static_cast<void>(wanted);
        return std::nullopt;
    }
    /// Brings an image from its registry; blocks until it is here. Throws Error(NotFound) where its
    /// registry has none, Unavailable where no registry answers or fetches were stopped,
    /// InvalidArgument for one that is refused, DiskFull, Deadline, Unsupported.
    virtual KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) {
        static_cast<void>(stages);
        throw Error(ErrorCode::Unsupported, "this runtime fetches no images: " + fetch.reference);
    }
    /// Fetches that are under way, and later ones, end with Unavailable, as does waiting for an
    /// image that is being unpacked: the server stops.
    virtual void stopFetching() {}
    /// Removes images that this instance brought and that neither `wanted` (images of pools) nor a
    /// sandbox needs any more; never another's. No fetch may be under way.
    virtual void collectImages(const std::vector<std::string>& wanted) {
        static_cast<void>(wanted);
    }
    /// The layers that are here, by digest. Throws Error(Unsupported), in words for an operator,
    /// where sandboxes can have none.
    virtual std::vector<std::string> layers() {
        throw Error(ErrorCode::Unsupported, "sandboxes of this runtime can have no layers");
    }
    /// Makes a layer of the archive in the file `tar`, which is only borrowed; it appears whole or
    /// not at all. Nothing happens where it is there. The archive is not trusted: Error
    /// (InvalidArgument) for one that is refused, DiskFull. One digest one at a time.
    virtual void addLayer(const std::string& digest, int tar) {
        static_cast<void>(digest), static_cast<void>(tar);
        layers();
    }
    /// Removes it; nothing there is fine. No sandbox has it, nor will be created with it meanwhile.
    virtual void removeLayer(const std::string& digest) { static_cast<void>(digest); }
    /// Removes every kernel object of this instance that belongs to none of `keep`.
    virtual void sweep(const std::vector<SandboxId>& keep) = 0;
    virtual RuntimeFacts facts() = 0;
};

}  // namespace hearth::pool
