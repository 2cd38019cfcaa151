#include "api/http/RequestFacts.h"
#include "api/rest/model/Answers.h"
#include "api/rest/operations/Tables.h"
#include "base/http/Url.h"

namespace hearth::rest {
namespace {

using controller::Services;

constexpr const char* kTar = "application/x-tar";
constexpr const char* kBytes = "application/octet-stream";
constexpr const char* kPattern = "/v1/workspaces/{workspace}/archive";

Operation archiveOperation(std::string method, std::string id, std::string summary) {
    Operation op(std::move(method), kPattern, std::move(id), std::move(summary), "Files");
    op.parameters = {queryParameter("path", Schema::string(kPath).fallback("."),
                                    "The directory, relative to the root")};
    op.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::Gone, ErrorCode::Forbidden,
                   ErrorCode::SandboxLost};
    return op;
}

/// True if the client accepts bytes of no type and does not name a tar: generated clients know only
/// that type.
bool wantsBytes(const api::Request& request) {
    bool bytes = false;
    for (const Poco::Net::MediaType& type : api::acceptedTypes(request)) {
        if (type.matches("application", "x-tar")) return false;
        bytes = bytes || type.matches("application", "octet-stream");
    }
    return bytes;
}

/// Errors that are known before the first byte are complete answers; later ones cut the body off.
void requireDirectory(const Services& services, const Call& call, const std::string& path) {
    const std::string workspace = call.param("workspace");
    const agent::FileStat stat = services.workspaces.stat(call.who, workspace, path);
    if (stat.type == agent::FileType::Directory) return;
    if (stat.type != agent::FileType::Symlink) {
        throw Error(ErrorCode::Conflict, std::string("this path is a ") +
                                             agent::kFileTypes.of(stat.type) + ", not a directory")
            .hint("Read a file by GET …/files/{path}");
    }
    services.workspaces.listFiles(call.who, workspace, path, false, 1, "");
}

/// Only a plain tar is accepted; any other Content-Type or encoding is refused at once.
std::optional<api::Response> refusePacked(const api::Request& request) {
    const std::string media = api::mediaTypeOf(request);
    const std::string coding =
        toLower(trim(request.header("Content-Encoding").value_or("identity")));
    const bool plain = media.empty() || media == "application/x-tar" ||
                       media == "application/tar" || media == "application/octet-stream" ||
                       media == "application/x-www-form-urlencoded";  // curl's default
    if (plain && coding == "identity") return std::nullopt;
    return wrongMedia(request, "Not a plain tar",
                      coding == "identity" ? "archives come as application/x-tar, not " + media
                                           : "archives come without Content-Encoding",
                      "Send an uncompressed tar: tar -cf - . | curl -T - …/archive");
}

}  // namespace

Operations archiveOperations(const Services& services) {
    Operations all;
    Operation get = archiveOperation("GET", "readArchive", "Read a directory as a tar");
    get.description =
        "Streamed; made while it is sent. Names are relative to the directory; links are kept as "
        "links, sockets and the like are left out. A body that is cut off means that the tar could "
        "not "
        "be finished.";
    get.answers = {{200, "The archive, GNU tar", {}, kTar}, {200, "The same", {}, kBytes}};
    get.handle = [&services](Call& call) {
        const auto path = call.queryOr<std::string>("path", ".");
        requireDirectory(services, call, path);
        api::Response response;
        response.headers = {{"Content-Type", wantsBytes(call.request) ? kBytes : kTar},
                            {"Content-Disposition", "attachment; filename=\"workspace.tar\""},
                            {"X-Content-Type-Options", "nosniff"},
                            {"Cache-Control", "private, no-cache"}};
        response.body = api::BodyWriter([&services, who = call.who,
                                         workspace = call.param("workspace"),
                                         path](const std::function<void(std::string_view)>& write) {
            services.workspaces.readArchive(who, workspace, path, [&write](std::string_view bytes) {
                write(bytes);
                return true;
            });
        });
        return response;
    };
    all.push_back(std::move(get));

    Operation put = archiveOperation("PUT", "writeArchive", "Unpack a tar");
    put.description =
        "A plain tar (ustar, pax, GNU), streamed. It is unpacked beside the directory and moved in "
        "when all of it has arrived and is valid: a refused tar changes nothing. Directories are "
        "merged, files replaced. Links keep their targets. Refused are absolute names, names with "
        "\"..\", names that lead through a link, devices, FIFOs, sparse files, repeated names, "
        "more "
        "than 100,000 entries or 64 levels. Owners and the set-id bits are not kept.";
    put.body_kind = Body::Raw;
    put.answers = {{200, "What was unpacked", schemaOf<agent::ArchiveCount>()},
                   {415, "Not a plain tar", {}, "application/problem+json"}};
    put.problems.insert(put.problems.end(), {ErrorCode::PayloadTooLarge, ErrorCode::DiskFull});
    put.handle = [&services](Call& call) {
        if (std::optional<api::Response> refused = refusePacked(call.request)) return *refused;
        return jsonResponse(jsonOf(services.workspaces.writeArchive(
            call.who, call.param("workspace"), call.queryOr<std::string>("path", "."),
            [&call](char* out, std::size_t size) { return call.request.readSome(out, size); })));
    };
    all.push_back(std::move(put));
    return all;
}

}  // namespace hearth::rest
