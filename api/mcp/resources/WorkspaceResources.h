#pragma once

#include "api/mcp/resources/Resources.h"

namespace hearth::mcp {

/// A file that a resource's URI names.
struct FileUri {
    std::string workspace;
    std::string path;
};
/// Returns the file of `workspace://{id}/files/{path}`; nullopt for another URI. Throws
/// Error(InvalidArgument) if its path is badly encoded.
std::optional<FileUri> fileOf(const std::string& uri);

/// `workspace://{id}`, its `/logs` (executions with the end of their output, unless it is long) and
/// its `/files/{path}` (a file's bytes, a directory's entries). Only open workspaces are listed.
class WorkspaceResources final : public ResourceSource {
public:
    explicit WorkspaceResources(const controller::Services& services) : services_(services) {}

    void list(const CallContext& context, Json& resources) const override;
    void templates(Json& templates) const override;
    std::optional<Json> read(const CallContext& context, const std::string& uri) const override;
    bool watchable(const CallContext& context, const std::string& uri) const override;
    std::optional<std::vector<std::string>> complete(const CallContext& context,
                                                     const std::string& uri_template,
                                                     const Typed& typed) const override;

    /// The largest file that is given as a blob. For a long text, the beginning is given; for a
    /// larger file that is not text, only how to get it.
    static constexpr std::uint64_t kFileCap = 700'000;

private:
    Json facts(const CallContext& context, const std::string& uri, const std::string& id) const;
    Json logs(const CallContext& context, const std::string& uri, const std::string& id) const;
    Json file(const CallContext& context, const std::string& uri, const std::string& id,
              const std::string& path) const;

    /// Returns the entries of the directory in which `typed` ends; none if it cannot be read.
    std::vector<std::string> pathsLike(const CallContext& context, const std::string& id,
                                       const std::string& typed) const;

    const controller::Services& services_;
};

}  // namespace hearth::mcp
