#pragma once

#include <string>

#include "pool/runtime/docker/EngineClient.h"

namespace hearth::pool::docker {

/// A small tree of files that becomes an image of its own. Not thread-safe.
class RootArchive {
public:
    /// `name` is relative to the root; its folders have been added before.
    void addFolder(const std::string& name);
    void addFile(const std::string& name, const std::string& content, unsigned mode);
    /// The whole of it, a tar.
    std::string bytes() const;
    /// Makes the image `repository:tag`. Throws what EngineClient::call() does.
    void load(EngineClient& engine, const std::string& repository, const std::string& tag,
              TimePoint until) const;

private:
    std::string tar_;
};

}  // namespace hearth::pool::docker
