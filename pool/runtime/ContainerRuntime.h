#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "pool/runtime/ImageRuntime.h"
#include "pool/runtime/LayerRuntime.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::pool {

/// The isolation that is really in force; shown by GET /v1/capabilities and `hearth doctor`.
struct RuntimeFacts {
    std::string name;     ///< "oci", "fake"
    std::string version;  ///< of the program that makes containers
    bool user_namespaces = false;
    bool seccomp = false;
    std::string cgroup;               ///< "v1", "v2", "none"
    std::vector<std::string> holes;   ///< unfixed CVEs known in that version
    std::vector<std::string> images;  ///< images that are ready for use
    /// Facts of some images, known from their files only.
    struct ImageNote {
        std::string digest;
        std::string reference;  ///< its name at the import; may be empty
        std::vector<std::string> languages;
    };
    std::map<std::string, ImageNote> image_notes = {};
};

/// The whole interface of a runtime. A user of one part takes only that part's interface.
class ContainerRuntime : public SandboxRuntime, public ImageRuntime, public LayerRuntime {
public:
    virtual RuntimeFacts facts() = 0;
    /// Called when the server stops: all calls, running and later ones, end within `most`.
    virtual void finishWithin(std::chrono::milliseconds most) { static_cast<void>(most); }
};

}  // namespace hearth::pool
