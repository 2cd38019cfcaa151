#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "pool/runtime/ImageRuntime.h"
#include "pool/runtime/LayerRuntime.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::pool {

/// The isolation really in force; shown by GET /v1/capabilities and `hearth doctor`.
struct RuntimeFacts {
    std::string name;     ///< "oci", "fake"
    std::string version;  ///< of the program that makes containers
    bool user_namespaces = false;
    bool seccomp = false;
    std::string cgroup;               ///< "v1", "v2", "none"
    std::vector<std::string> holes;   ///< known unfixed CVEs of that version
    std::vector<std::string> images;  ///< images that are ready
    /// Facts of some images, known from their files alone.
    struct ImageNote {
        std::string digest;
        std::string reference;  ///< what it was imported as; may be empty
        std::vector<std::string> languages;
    };
    std::map<std::string, ImageNote> image_notes = {};
};

/// A whole runtime. A user of one side takes only that interface.
class ContainerRuntime : public SandboxRuntime, public ImageRuntime, public LayerRuntime {
public:
    virtual RuntimeFacts facts() = 0;
    /// The server stops: all calls end within `most`, those under way and later ones.
    virtual void finishWithin(std::chrono::milliseconds most) { static_cast<void>(most); }
};

}  // namespace hearth::pool
