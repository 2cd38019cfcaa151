#pragma once

#include <optional>
#include <string>

namespace hearth::cli {

/// A path in a workspace, as `hearth cp` writes it: ws_4f0c…:dir/file, or NAME:dir/file.
struct RemotePath {
    std::string workspace;
    std::string path;     ///< relative to the root; "." is the root
    bool as_dir = false;  ///< it was written with a slash at its end

    /// The remote path that the word names; nullopt for a local path ("./ws_x:y" too).
    static std::optional<RemotePath> parse(const std::string& word);
    std::string name() const;  ///< its last part; empty for the root
    /// "/v1/workspaces/{w}/files/{path}", or its archive or list.
    std::string fileTarget() const;
    std::string archiveTarget() const;
    std::string listTarget() const;
    RemotePath child(const std::string& name) const;
};

}  // namespace hearth::cli
