#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http/RequestHead.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/mirror/store/FileCache.h"

namespace hearth::egress {

/// For this time a failed index is not requested again, if no older answer is known.
inline constexpr auto kFreshFailure = std::chrono::seconds(5);

/// Throws Refused (404): the mirror does not have it.
[[noreturn]] void refuseUnknown(const std::string& what);

/// A request with its tenant.
struct MirrorRequest {
    const RequestHead& head;
    std::string tenant;
};

/// An answer: a text, or a file that may still be arriving.
struct MirrorAnswer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::shared_ptr<const std::string> text;
    std::shared_ptr<CachedFile> file;
    std::string etag;                   ///< of a file, with its quotes; empty for a text
    std::optional<std::uint64_t> size;  ///< of a file that HEAD asks for, if it is known
    std::string what;                   ///< "pypi:numpy", for the log
    std::string result = "";            ///< hit, miss, error
};

/// The URLs of an index's file, and its required hash.
struct IndexFile {
    std::vector<std::string> urls;  ///< a later one is used if the earlier ones lack it
    ContentHash hash;
    std::uint64_t most = 8ULL << 30U;     ///< bytes
    std::optional<std::uint64_t> size{};  ///< as the index says, without proof
};

/// Files of package indexes, through the cache that all sandboxes share. Thread-safe.
class IndexFiles {
public:
    /// Both outlive it.
    IndexFiles(Fetcher& fetcher, FileCache& cache) : fetcher_(fetcher), cache_(cache) {}

    /// Opens the file, possibly while it arrives, for a tenant or (empty) for all. Throws Refused
    /// if its hash cannot be checked.
    FileCache::Found open(const IndexFile& file, const std::string& tenant) const;
    /// Opens it as an answer. For HEAD nothing is fetched; an unknown size is requested.
    void answer(const MirrorRequest& asked, const IndexFile& file, MirrorAnswer& answer) const;

private:
    std::optional<std::uint64_t> sizeOf(const IndexFile& file) const;

    Fetcher& fetcher_;
    FileCache& cache_;
};

}  // namespace hearth::egress
