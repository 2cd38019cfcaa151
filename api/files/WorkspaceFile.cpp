#include "api/files/WorkspaceFile.h"

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/Error.h"

namespace hearth::api {

FileSource workspaceFile(const controller::Services& services, const controller::Principal& who,
                         const std::string& workspace, const std::string& path) {
    FileSource source;
    source.stat = services.workspaces.stat(who, workspace, path);
    if (source.stat.type == agent::FileType::Symlink) {
        // Only the sandbox can follow a link: opening it there refuses a target outside.
        services.workspaces.readFile(
            who, workspace, path, 0, 1,
            [&source](const agent::FileStat& opened) { source.stat = opened; },
            [](std::string_view) { return false; });
    }
    if (source.stat.type != agent::FileType::File) {
        throw Error(ErrorCode::Conflict, std::string("this path is a ") +
                                             agent::kFileTypes.of(source.stat.type) +
                                             ", not a file")
            .hint("List a directory by GET …/files?path=");
    }
    source.read = [&services, who, workspace, path, etag = source.stat.etag](
                      std::uint64_t offset, std::uint64_t length,
                      const std::function<bool(std::string_view)>& sink) {
        services.workspaces.readFile(
            who, workspace, path, offset, length,
            [&etag](const agent::FileStat& now) {
                if (now.etag != etag) {
                    throw Error(ErrorCode::Conflict, "the file changed while it was read")
                        .hint("Read it again");
                }
            },
            sink);
    };
    return source;
}

}  // namespace hearth::api
