#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::controller {

/// The label of a sandbox that names its layer's digest.
inline constexpr const char* kLayerLabel = "layer";

/// How the names of files end that are not kept, should a crash leave them beside the locks.
inline constexpr const char* kUnfinishedLock = ".new";

struct LockedPackage {
    std::string name;
    std::string version;

    bool operator==(const LockedPackage&) const = default;
};

/// Which files of an index a set of packages came to: one line for each, as pip reads it
/// ("name==version --hash=sha256:…"), sorted by name.
struct LayerLock {
    std::string text;
    std::vector<LockedPackage> packages;
};

/// Reads a sandbox's lock: only such lines, each with at least one hash, each name once, at most
/// 2,000. Throws Error(InvalidArgument).
LayerLock parseLayerLock(std::string_view text);

/// Names the layer that a lock makes with an image: "sha256:…".
std::string layerDigest(std::string_view image_digest, const LayerLock& lock);

/// The requested packages, sorted: their order does not matter.
std::vector<std::string> sortedSpecs(std::vector<std::string> specs);

/// A set that was resolved once.
struct LayerRecord {
    std::string image;         ///< as pools call it
    std::string image_digest;  ///< the image whose Python and platform it fits
    std::vector<std::string> specs;
    std::string layer;  ///< digest
    LayerLock lock;
};

/// The locks of all sets, each in a file of its own, by image digest and specifiers: as pip reads
/// it, and what it is for in comments. Durable: a file is whole, on the disk, or not there. One
/// caller at a time.
class LayerLocks {
public:
    /// The directory is made, and what a crash has left in it removed.
    explicit LayerLocks(std::string directory);

    /// nullopt also for one that cannot be read: it is made anew.
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
