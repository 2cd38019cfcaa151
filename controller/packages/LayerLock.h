#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::controller {

/// The sandbox label that names the digest of its layer.
inline constexpr const char* kLayerLabel = "layer";

/// The suffix of unfinished files, which a crash may leave beside the locks.
inline constexpr const char* kUnfinishedLock = ".new";

struct LockedPackage {
    std::string name;
    std::string version;

    bool operator==(const LockedPackage&) const = default;
};

/// The index files that a set of packages resolved to: one line per file, as pip reads it
/// ("name==version --hash=sha256:…"), sorted by name.
struct LayerLock {
    std::string text;
    std::vector<LockedPackage> packages;
};

/// Reads a sandbox's lock: only such lines, each with at least one hash, each name once, at most
/// 2,000. Throws Error(InvalidArgument).
LayerLock parseLayerLock(std::string_view text);

/// Returns the name of the layer that a lock and an image make: "sha256:…".
std::string layerDigest(std::string_view image_digest, const LayerLock& lock);

/// The requested packages, sorted and without duplicates: their order does not matter.
std::vector<std::string> sortedSpecs(std::vector<std::string> specs);

/// A set of packages with its result.
struct LayerRecord {
    std::string image;         ///< in the pools' spelling
    std::string image_digest;  ///< the image whose Python and platform it fits
    std::vector<std::string> specs;
    std::string layer;  ///< digest
    LayerLock lock;
};

/// The locks of all sets, each in its own file, named by image digest and specifiers: as pip reads
/// it, with its purpose in comments. Durable: a file is either complete on disk, or missing. One
/// caller at a time.
class LayerLocks {
public:
    /// Creates the directory, and removes files that a crash left in it.
    explicit LayerLocks(std::string directory);

    /// Also nullopt for a lock that cannot be read: it is made again.
    std::optional<LayerRecord> find(const std::string& image_digest,
                                    const std::vector<std::string>& specs) const;
    std::vector<LayerRecord> all() const;
    void put(const LayerRecord& record) const;
    void remove(const LayerRecord& record) const;
    /// The file's name in the directory.
    static std::string nameOf(const std::string& image_digest,
                              const std::vector<std::string>& specs);
    const std::string& directory() const { return directory_; }

private:
    std::optional<LayerRecord> read(const std::string& name) const;

    std::string directory_;
};

}  // namespace hearth::controller
