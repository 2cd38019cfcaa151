#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "pool/gpu/cdi/CdiDocument.h"

namespace hearth::pool::cdi {

/// The kind of GPUs and MIG instances in NVIDIA's toolkit.
inline constexpr const char* kGpuKind = "nvidia.com/gpu";

/// The operator's command for a file that names them by uuid.
inline constexpr const char* kHowToNameGpus =
    "as root: nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml";

/// The folders of CDI files. A later folder outweighs an earlier one.
struct CdiFolders {
    std::vector<std::string> paths{"/etc/cdi", "/var/run/cdi"};
    uid_t owner = 0;  ///< only this user may be able to change folders and files
};

/// The devices that this machine's CDI files describe, as read at one moment. Root carries out the
/// files' edits, so a file or folder that others than its owner may write to is refused.
class CdiSpecs {
public:
    /// Never fails as a whole: a file that is refused becomes one of problems().
    static CdiSpecs read(const CdiFolders& folders);

    /// Returns everything that a container with these GPUs needs, by their uuids. Nothing is
    /// guessed by index, because an index may mean another device after a restart. Throws
    /// Error(Unsupported) that lists the files read if a device is missing or ambiguous.
    CdiEdits gpus(const std::vector<std::string>& uuids) const;

    /// Returns the uuids that gpus() knows, sorted.
    std::vector<std::string> gpuUuids() const;
    /// True if a file was read and not refused.
    bool anyFile() const { return !files_.empty(); }

    /// A file or folder that was refused, and the reason.
    struct Problem {
        std::string file;
        std::string why;
    };
    const std::vector<Problem>& problems() const { return problems_; }

private:
    /// The place of a device: indexes into documents_. More than one: a conflict.
    struct Entry {
        std::size_t folder = 0;
        std::vector<std::size_t> documents;
    };

    void readFolder(const std::string& path, std::size_t folder, uid_t owner);
    void take(std::string file, CdiDocument document, std::size_t folder);
    std::string whatWasRead() const;

    std::vector<std::string> folders_;
    std::vector<std::string> files_;  ///< paths of documents_
    std::vector<CdiDocument> documents_;
    std::map<std::string, Entry> devices_;  ///< by "vendor/class=name"
    std::vector<Problem> problems_;
};

}  // namespace hearth::pool::cdi
