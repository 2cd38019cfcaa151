#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "pool/gpu/cdi/CdiDocument.h"

namespace hearth::pool::cdi {

/// The kind under which NVIDIA's toolkit names GPUs and MIG instances.
inline constexpr const char* kGpuKind = "nvidia.com/gpu";

/// How an operator makes a file that names them by uuid.
inline constexpr const char* kHowToNameGpus =
    "as root: nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml";

/// Where CDI files lie. A later folder outweighs an earlier one.
struct CdiFolders {
    std::vector<std::string> paths{"/etc/cdi", "/var/run/cdi"};
    uid_t owner = 0;  ///< who alone may be able to change folders and files
};

/// The devices that this machine's CDI files describe, as read at one moment. What a file says is
/// done as root: a file or folder that others than its owner may write to is refused.
class CdiSpecs {
public:
    /// Never fails as a whole: a file that is refused is one of problems().
    static CdiSpecs read(const CdiFolders& folders);

    /// All that a container with these GPUs needs, by their uuids. Nothing is guessed by index,
    /// because an index may mean another device after a restart. Throws Error(Unsupported) that
    /// says which files were read, where a device is not named or not clearly.
    CdiEdits gpus(const std::vector<std::string>& uuids) const;

    /// Those that gpus() knows, sorted.
    std::vector<std::string> gpuUuids() const;
    /// Whether a file was read and not refused.
    bool anyFile() const { return !files_.empty(); }

    /// A file or folder that was refused, and why.
    struct Problem {
        std::string file;
        std::string why;
    };
    const std::vector<Problem>& problems() const { return problems_; }

private:
    /// Where a device is: indexes into documents_. More than one: a conflict.
    struct Entry {
        std::size_t folder = 0;
        std::vector<std::size_t> documents;
    };

    void readFolder(const std::string& path, std::size_t folder, uid_t owner);
    void take(std::string file, CdiDocument document, std::size_t folder);
    std::string whatWasRead() const;

    std::vector<std::string> folders_;
    std::vector<std::string> files_;  ///< of documents_
    std::vector<CdiDocument> documents_;
    std::map<std::string, Entry> devices_;  ///< by "vendor/class=name"
    std::vector<Problem> problems_;
};

}  // namespace hearth::pool::cdi
