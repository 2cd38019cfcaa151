#include <unistd.h>

#include <algorithm>
#include <memory>

#include "api/files/WorkspaceFile.h"
#include "api/http/FileAnswer.h"
#include "api/http/RequestFacts.h"
#include "api/rest/model/Answers.h"
#include "api/rest/operations/Tables.h"
#include "base/Units.h"
#include "controller/executions/MediaType.h"
#include "controller/executions/SignedLink.h"

namespace hearth::rest {
namespace {

using controller::Services;
using controller::SignedLink;

constexpr std::int64_t kLongestLink = 7L * 24 * 3600;

/// The media type if a browser may show the file but not run it: then a page can embed images.
std::string passiveMedia(std::string_view path) {
    const std::string type = controller::mediaType(path, "");
    static constexpr std::string_view kPassive[] = {
        "image/png",  "image/jpeg", "image/gif",        "image/webp",     "image/bmp",
        "text/plain", "text/csv",   "application/json", "application/pdf"};
    const bool passive = std::ranges::find(kPassive, type) != std::end(kPassive);
    return passive ? type : "application/octet-stream";
}

SignedLink linkOf(const Services& services, std::string_view token) {
    return controller::readLink(services.secret_key, token, services.clock.wall());
}

/// The kept copy of an artifact, which outlives its workspace.
api::FileSource artifactFile(const Services& services, const SignedLink& link) {
    if (!services.open_artifact) throw Error(ErrorCode::Gone, "the artifact is no longer kept");
    auto [opened, size] = services.open_artifact(link);
    const auto fd = std::make_shared<Fd>(std::move(opened));
    api::FileSource source;
    source.stat.type = agent::FileType::File;
    source.stat.mode = 0644;
    source.stat.size = size;
    source.stat.etag = link.artifact;  // it is written only once
    source.read = [fd](std::uint64_t offset, std::uint64_t length,
                       const std::function<bool(std::string_view)>& sink) {
        std::string piece(std::min<std::uint64_t>(length, 128U << 10U), '\0');
        while (length > 0) {
            const ssize_t n =
                ::pread(fd->get(), piece.data(), std::min<std::uint64_t>(length, piece.size()),
                        static_cast<off_t>(offset));
            if (n < 0) throwErrno("pread");
            if (n == 0) return;
            if (!sink(std::string_view(piece).substr(0, static_cast<std::size_t>(n)))) return;
            offset += static_cast<std::uint64_t>(n);
            length -= static_cast<std::uint64_t>(n);
        }
    };
    return source;
}

/// Accesses the file as the workspace's own tenant, because the link was signed for that tenant.
api::Response follow(const Services& services, Call& call) {
    const SignedLink link = linkOf(services, call.param("token"));
    // A browser saves the file by this name: a name other than the signed path's is a forgery.
    if (call.param("name") != controller::linkName(link.path)) {
        throw Error(ErrorCode::Forbidden, "this link was signed for a file of another name")
            .hint("Use the link as it was given; its last part is signed, too");
    }
    api::FileSource source = link.artifact.empty()
                                 ? api::workspaceFile(services, call.who, link.workspace, link.path)
                                 : artifactFile(services, link);
    source.media = passiveMedia(link.path);
    api::Response response = api::fileAnswer(call.request, std::move(source));
    response.headers.add("Referrer-Policy", "no-referrer");
    return response;
}

Operation followOperation(const Services& services, std::string method, std::string id,
                          std::string summary) {
    Operation op(std::move(method), "/v1/links/{token}/{name}", std::move(id), std::move(summary),
                 "Files");
    op.open = true;
    op.speaks_for = [&services](const api::RouteParams& path) {
        controller::Principal who;
        who.tenant = linkOf(services, path.param("token")).tenant;
        return who;
    };
    op.parameters = {headerParameter("Range", "One range of bytes")};
    op.answers = {{200, "The bytes", {}, "application/octet-stream"},
                  {206, "The range of it", {}, "application/octet-stream"},
                  {304, "Not changed", {}, {}},
                  {416, "The range begins after the end", {}, "application/problem+json"}};
    op.problems = {ErrorCode::InvalidArgument, ErrorCode::Forbidden, ErrorCode::NotFound,
                   ErrorCode::Conflict,        ErrorCode::Gone,      ErrorCode::SandboxLost};
    op.handle = [&services](Call& call) { return follow(services, call); };
    return op;
}

}  // namespace

Operations linkOperations(const Services& services) {
    Operations all;
    Operation make("POST", "/v1/workspaces/{workspace}/links", "createLink",
                   "Sign a link to a file", "Files");
    make.description =
        "The URL works without a token, for GET and HEAD with Range, until it expires or the "
        "workspace ends. It opens only this workspace and path, and returns whatever file is at "
        "the path then.";
    make.idempotent = make.replayed = true;
    make.parameters = {idempotencyKeyParameter()};
    make.body_kind = Body::Json;
    make.body = Schema::object()
                    .required("path", Schema::string(kPath))
                    .optional("expiresInSeconds", Schema::integer(1, kLongestLink).fallback(3600))
                    .example({{"path", "plot.png"}, {"expiresInSeconds", 3600}})
                    .named("LinkRequest");
    make.answers = {{201,
                     "The link",
                     Schema::object()
                         .required("url", Schema::string())
                         .required("path", Schema::string())
                         .required("expiresAt", Schema::string(kDateTime))
                         .named("Link"),
                     {},
                     {},
                     {{"url", "http://127.0.0.1:8080/v1/links/TOKEN/plot.png"},
                      {"path", "plot.png"},
                      {"expiresAt", "2026-11-21T04:04:09.000Z"}}}};
    make.problems = {
        ErrorCode::NotFound,           ErrorCode::Conflict,    ErrorCode::Gone,
        ErrorCode::Forbidden,          ErrorCode::SandboxLost, ErrorCode::IdempotencyInFlight,
        ErrorCode::IdempotencyMismatch};
    make.handle = [&services](Call& call) {
        SignedLink link;
        link.tenant = call.who.tenant;
        link.workspace = call.param("workspace");
        link.path = call.body.at("path").get<std::string>();
        // Otherwise somebody else would find out later that the link leads to nothing.
        api::workspaceFile(services, call.who, link.workspace, link.path);
        const std::int64_t now = toUnixMillis(services.clock.wall());
        link.expires_unix = now / 1000 + call.body.value("expiresInSeconds", std::int64_t{3600});
        return jsonResponse(
            {{"url", api::originOf(call.request) + controller::linkPath(services.secret_key, link)},
             {"path", toUtf8(link.path)},
             {"expiresAt", formatUnixMillis(link.expires_unix * 1000)}},
            201);
    };
    all.push_back(std::move(make));
    all.push_back(followOperation(services, "GET", "followLink", "Read what a link names"));
    all.push_back(followOperation(services, "HEAD", "headLink", "Its size and kind"));
    return all;
}

}  // namespace hearth::rest
