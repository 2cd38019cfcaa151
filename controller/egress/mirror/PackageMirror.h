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
#include "controller/egress/mirror/npm/NpmIndex.h"
#include "controller/egress/mirror/pypi/PypiIndex.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/mirror/store/IndexFiles.h"

namespace hearth::egress {

/// The indexes that the operator named; empty: none of that kind. A sandbox always reaches them at
/// its own loopback.
struct MirrorSources {
    std::string pypi;                ///< URL of a simple repository, "https://…/simple/"
    std::string npm;                 ///< URL of a registry, "https://…/"
    std::vector<std::string> hosts;  ///< "host[:port]" of other hosts that have their files

    bool any() const { return !pypi.empty() || !npm.empty(); }
};

/// A project's page, parsed and rewritten once, however often it is requested.
struct PypiPage {
    PypiProject project;
    std::shared_ptr<const std::string> html;
    std::shared_ptr<const std::string> json;
    std::size_t bytes() const;
};

/// Package indexes as sandboxes see them, under /pypi/ and /npm/ of their egress port:
/// read-only, each file checked against its index's hash, through one cache for all. Tenants can
/// write nothing here; they request names, never addresses. Thread-safe; calls block for the
/// index.
class PackageMirror {
public:
    /// `base` is its URL in sandboxes, "http://127.0.0.1:PORT". `cache` and `fetcher` outlive it.
    PackageMirror(const MirrorSources& sources, std::string base, Fetcher& fetcher,
                  FileCache& cache, const Clock& clock);

    /// Throws nothing except std::bad_alloc: failures are answers too.
    MirrorAnswer answer(const MirrorRequest& asked);

    /// The environment variables that lead pip, uv and npm to the mirror.
    std::map<std::string, std::string> environment() const;

private:
    template <typename Content>
    struct Page {
        Mutex mutex;
        TimePoint fresh_until HEARTH_GUARDED_BY(mutex){};
        std::string etag HEARTH_GUARDED_BY(mutex);
        /// Null: not yet requested, or absent.
        std::shared_ptr<const Content> content HEARTH_GUARDED_BY(mutex);
        std::string failure HEARTH_GUARDED_BY(mutex);  // why it cannot be fetched
    };
    /// The most recently used pages, as many as fit; other pages are fetched again.
    template <typename Content>
    struct Pages {
        Mutex mutex;
        std::map<std::string, std::shared_ptr<Page<Content>>> all HEARTH_GUARDED_BY(mutex);
        std::list<std::string> by_use HEARTH_GUARDED_BY(mutex);
        std::map<std::string, std::size_t> sizes HEARTH_GUARDED_BY(mutex);  // of content
        std::size_t bytes HEARTH_GUARDED_BY(mutex) = 0;
        std::shared_ptr<Page<Content>> get(const std::string& key);
        /// Records the page's size, and drops older pages if they exceed the limit together.
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
    std::counting_semaphore<> parsers_{2};  ///< how many pages are parsed at once
    Pages<PypiPage> projects_;
    Pages<NpmPackage> packages_;
};

}  // namespace hearth::egress
