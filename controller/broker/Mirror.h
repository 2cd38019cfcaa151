#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/http/RequestHead.h"
#include "controller/broker/Fetcher.h"
#include "controller/broker/FileCache.h"
#include "controller/broker/NpmIndex.h"
#include "controller/broker/PypiIndex.h"

namespace hearth::broker {

/// The indexes that the operator named; empty: none of that kind. Where a sandbox finds them is
/// always its own loopback.
struct MirrorSources {
    std::string pypi;                ///< of a simple repository, "https://…/simple/"
    std::string npm;                 ///< of a registry, "https://…/"
    std::vector<std::string> hosts;  ///< "host[:port]" where else their files lie

    bool any() const { return !pypi.empty() || !npm.empty(); }
};

/// What is answered: a text, or a file as it comes.
struct MirrorAnswer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string text;
    std::shared_ptr<CachedFile> file;
    std::string what;         ///< "pypi:numpy", for the log
    std::string result = "";  ///< hit, miss, error
};

/// Package indexes as sandboxes see them, under /pypi/ and /npm/ of their broker's port: read-only,
/// each file checked against its index's hash, through one cache for all. Tenants can write
/// nothing here; what they ask for is a name, never an address. Thread-safe; calls block for the
/// index.
class Mirror {
public:
    /// `base` is how sandboxes reach it, "http://127.0.0.1:PORT". `cache` and `fetcher` outlive it.
    Mirror(MirrorSources sources, std::string base, Fetcher& fetcher, FileCache& cache,
           const Clock& clock);

    /// Never throws but for a lack of memory: what went wrong is an answer, too.
    MirrorAnswer answer(const RequestHead& head);

    /// What makes pip, uv and npm find it.
    std::map<std::string, std::string> environment() const;

private:
    template <typename Content>
    struct Page {
        std::mutex mutex;
        TimePoint fresh_until{};                 // guarded by mutex
        std::string etag;                        // guarded by mutex
        std::shared_ptr<const Content> content;  // guarded by mutex; null: not yet asked
        int status = 0;                          // guarded by mutex: of the index's last answer
    };
    /// The pages used last; the others are asked for again.
    template <typename Content>
    struct Pages {
        std::mutex mutex;
        std::map<std::string, std::shared_ptr<Page<Content>>> all;  // guarded by mutex
        std::list<std::string> by_use;                              // guarded by mutex
        std::shared_ptr<Page<Content>> get(const std::string& key);
    };
    template <typename Content, typename Parse>
    std::shared_ptr<const Content> page(Pages<Content>& pages, const std::string& key,
                                        const std::string& url, const std::string& accept,
                                        std::uint64_t most, const Parse& parse);

    void dispatch(const RequestHead& head, MirrorAnswer& answer);
    void pypi(const RequestHead& head, std::string_view path, MirrorAnswer& answer);
    void npm(const RequestHead& head, std::string_view path, MirrorAnswer& answer);
    std::shared_ptr<const PypiProject> project(const std::string& name);
    std::shared_ptr<const NpmPackage> package(const std::string& name);
    void file(const std::string& url, const ContentHash& hash, MirrorAnswer& answer);

    const MirrorSources sources_;
    const std::string base_;
    Fetcher& fetcher_;
    FileCache& cache_;
    const Clock& clock_;
    Pages<PypiProject> projects_;
    Pages<NpmPackage> packages_;
};

}  // namespace hearth::broker
