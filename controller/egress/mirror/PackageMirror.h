#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/RequestHead.h"
#include "controller/egress/mirror/apt/AptMirror.h"
#include "controller/egress/mirror/apt/AptSource.h"
#include "controller/egress/mirror/npm/NpmIndex.h"
#include "controller/egress/mirror/pypi/PypiIndex.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/mirror/store/IndexFiles.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::broker {

/// The indexes that the operator named; empty: none of that kind. Where a sandbox finds them is
/// always its own loopback.
struct MirrorSources {
    std::string pypi;                ///< of a simple repository, "https://…/simple/"
    std::string npm;                 ///< of a registry, "https://…/"
    std::vector<std::string> hosts;  ///< "host[:port]" where else their files lie
    std::vector<AptSource> apt;      ///< as parseAptSources() gives them

    bool any() const { return !pypi.empty() || !npm.empty() || !apt.empty(); }
};

/// A project's page, read and written anew once, however often it is asked for.
struct PypiPage {
    PypiProject project;
    std::shared_ptr<const std::string> html;
    std::shared_ptr<const std::string> json;
    std::size_t bytes() const;
};

/// Package indexes as sandboxes see them, under /pypi/, /npm/ and /apt/ of their broker's port:
/// read-only, each file checked against its index's hash, through one cache for all. Tenants can
/// write nothing here; what they ask for is a name, never an address. Thread-safe; calls block for
/// the index.
class PackageMirror {
public:
    /// `base` is how sandboxes reach it, "http://127.0.0.1:PORT". `cache` and `fetcher` outlive it.
    PackageMirror(MirrorSources sources, std::string base, Fetcher& fetcher, FileCache& cache,
                  const Clock& clock);

    /// Never throws, except for a lack of memory: failures are answers too.
    MirrorAnswer answer(const MirrorRequest& asked);

    /// The variables that lead pip, uv and npm to it.
    std::map<std::string, std::string> environment() const;
    /// The settings that lead apt to it.
    std::vector<agent::AptArchive> aptArchives() const;

private:
    template <typename Content>
    struct Page {
        Mutex mutex;
        TimePoint fresh_until HEARTH_GUARDED_BY(mutex){};
        std::string etag HEARTH_GUARDED_BY(mutex);
        /// Null: not yet asked, or absent.
        std::shared_ptr<const Content> content HEARTH_GUARDED_BY(mutex);
        std::string failure HEARTH_GUARDED_BY(mutex);  // why it cannot be fetched
    };
    /// The pages used last, as many as fit; the others are asked for again.
    template <typename Content>
    struct Pages {
        Mutex mutex;
        std::map<std::string, std::shared_ptr<Page<Content>>> all HEARTH_GUARDED_BY(mutex);
        std::list<std::string> by_use HEARTH_GUARDED_BY(mutex);
        std::map<std::string, std::size_t> sizes HEARTH_GUARDED_BY(mutex);  // of content
        std::size_t bytes HEARTH_GUARDED_BY(mutex) = 0;
        std::shared_ptr<Page<Content>> get(const std::string& key);
        /// The page takes so many bytes now: others make place.
        void sized(const std::string& key, std::size_t size);
        void drop(const std::string& key) HEARTH_REQUIRES(mutex);
    };
    template <typename Content, typename Parse>
    std::shared_ptr<const Content> page(Pages<Content>& pages, const std::string& key,
                                        const std::string& url, const std::string& accept,
                                        std::uint64_t most, const Parse& parse);

    void dispatch(const MirrorRequest& asked, MirrorAnswer& answer);
    void pypi(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer);
    void npm(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer);
    std::shared_ptr<const PypiPage> project(const std::string& name);
    std::shared_ptr<const NpmPackage> package(const std::string& name);

    const MirrorSources sources_;
    const std::string base_;
    Fetcher& fetcher_;
    const IndexFiles files_;
    const Clock& clock_;
    AptMirror apt_;
    std::counting_semaphore<> parsers_{2};  ///< pages that are being read at a time
    Pages<PypiPage> projects_;
    Pages<NpmPackage> packages_;
};

}  // namespace hearth::broker
