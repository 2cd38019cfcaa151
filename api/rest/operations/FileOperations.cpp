#include "api/files/WorkspaceFile.h"
#include "api/http/FileAnswer.h"
#include "api/http/RequestFacts.h"
#include "api/rest/model/Answers.h"
#include "api/rest/operations/Tables.h"
#include "base/Units.h"
#include "base/http/ByteRange.h"
#include "base/http/Url.h"

namespace hearth::rest {
namespace {

using controller::Services;

Operation fileOperation(std::string method, const std::string& pattern, std::string id,
                        std::string summary) {
    Operation op(std::move(method), "/v1/workspaces/{workspace}/files" + pattern, std::move(id),
                 std::move(summary), "Files");
    op.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::Gone, ErrorCode::Forbidden,
                   ErrorCode::SandboxLost};
    return op;
}

std::string pathParam(const Call& call) {
    std::string path = call.param("path");
    if (!kPath.valid(path)) {
        throw Error(ErrorCode::InvalidArgument, "the path of the file is not valid")
            .hint("Paths are 1 to 4096 bytes; list a directory by GET …/files?path=");
    }
    return path;
}

/// Checks If-Match and If-None-Match of a change against the file as it is before the change; two
/// writers at the same moment may still both pass.
void requireCondition(const Services& services, const Call& call, const std::string& path) {
    const std::optional<std::string> must = call.request.header("If-Match");
    const std::optional<std::string> must_not = call.request.header("If-None-Match");
    if (!must && !must_not) return;
    std::string tag;  // empty: nothing is there
    try {
        const agent::FileStat stat =
            services.workspaces.stat(call.who, call.param("workspace"), path);
        tag = api::quotedEtag(stat);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound) throw;
        // A missing workspace gives the same error again when it is written to.
    }
    if ((must && (tag.empty() || !etagMatches(*must, tag))) ||
        (must_not && !tag.empty() && etagMatches(*must_not, tag))) {
        throw Error(ErrorCode::PreconditionFailed,
                    tag.empty() ? "there is no such file" : "another file is there")
            .hint("Read it again for its ETag; If-None-Match: * writes only where none is");
    }
}

std::vector<Parameter> changeConditions() {
    return {
        headerParameter("If-Match", "The ETag that it must still have when this begins, else 412"),
        headerParameter("If-None-Match", "*: 412 where something is there")};
}

api::Response readResponse(const Services& services, const Call& call) {
    return api::fileAnswer(
        call.request,
        api::workspaceFile(services, call.who, call.param("workspace"), pathParam(call)));
}

api::Response writeResponse(const Services& services, const Call& call) {
    const std::string path = pathParam(call);
    // The file would contain the multipart boundaries, which nobody wants.
    if (api::mediaTypeOf(call.request) == "multipart/form-data") {
        return wrongMedia(call.request, "Not the bytes of a file",
                          "a file comes as its raw bytes, not as multipart/form-data",
                          "Send the bytes as the body: curl -T FILE …/files/{path}");
    }
    std::optional<unsigned> mode;
    if (const std::optional<std::string> text = call.request.header("X-File-Mode")) {
        mode = parseFileMode(trim(*text));
        if (!mode) {
            throw Error(ErrorCode::InvalidArgument, "X-File-Mode is not a file mode")
                .hint("Send octal permission bits, for example 0644");
        }
    }
    requireCondition(services, call, path);
    const agent::FileStat stat = services.workspaces.writeFile(
        call.who, call.param("workspace"), path, mode,
        [&call](char* out, std::size_t size) { return call.request.readSome(out, size); });
    api::Response response = jsonResponse(jsonOf(stat));
    if (!stat.etag.empty()) response.headers.add("ETag", api::quotedEtag(stat));
    return response;
}

Operations contentOperations(const Services& services) {
    Operations all;
    const std::vector<Parameter> conditions{
        headerParameter("Range", "One range of bytes; more than one: the whole"),
        headerParameter("If-None-Match", "304 where the ETag is still this one")};
    const std::vector<Answer> answers{
        {200, "The bytes, with ETag and X-File-Mode", {}, "application/octet-stream"},
        {206, "The range of it", {}, "application/octet-stream"},
        {304, "Not changed", {}, {}},
        {416, "The range begins after the end", {}, "application/problem+json"}};

    Operation get = fileOperation("GET", "/{path...}", "readFile", "Read a file");
    get.description = "Streamed; always as an attachment of type application/octet-stream.";
    get.parameters = conditions;
    get.answers = answers;
    get.handle = [&services](Call& call) { return readResponse(services, call); };
    Operation head = get;
    head.method = "HEAD";
    head.id = "statFile";
    head.summary = "Size, mode and ETag of a file";
    head.answers = {{200, "The head of GET", {}, {}},
                    {206, "The same for a range", {}, {}},
                    {304, "Not changed", {}, {}},
                    {416, "The range begins after the end", {}, {}}};
    all.push_back(std::move(get));
    all.push_back(std::move(head));

    Operation put = fileOperation("PUT", "/{path...}", "writeFile", "Write a file");
    put.description =
        "The raw body, streamed. Parents are created; the file is replaced at once, "
        "so a reader sees the old or the new content.";
    put.body_kind = Body::Raw;
    put.parameters = {headerParameter("X-File-Mode", Schema::string().sizes(1, 16).example("0755"),
                                      "Permission bits, octal")};
    for (Parameter& condition : changeConditions()) put.parameters.push_back(condition);
    put.answers = {{200, "The file as it is now", schemaOf<agent::FileStat>()},
                   {415, "A form", {}, "application/problem+json"}};
    put.problems.insert(put.problems.end(), {ErrorCode::PayloadTooLarge, ErrorCode::DiskFull,
                                             ErrorCode::PreconditionFailed});
    put.handle = [&services](Call& call) { return writeResponse(services, call); };
    all.push_back(std::move(put));

    Operation remove =
        fileOperation("DELETE", "/{path...}", "removeFile", "Remove a file or directory");
    remove.parameters = {queryParameter("recursive", Schema::boolean().fallback(false),
                                        "A directory with all that is in it"),
                         changeConditions().front()};
    remove.problems.push_back(ErrorCode::PreconditionFailed);
    remove.answers = {{204, "Removed", {}, {}}};
    remove.handle = [&services](Call& call) {
        requireCondition(services, call, pathParam(call));
        services.workspaces.removeFile(call.who, call.param("workspace"), pathParam(call),
                                       call.queryOr("recursive", false));
        return emptyResponse();
    };
    all.push_back(std::move(remove));
    return all;
}

}  // namespace

Operations fileOperations(const Services& services) {
    Operations all = contentOperations(services);

    Operation list = fileOperation("GET", "", "listFiles", "List a directory");
    list.parameters = pageParameters();
    list.parameters[1].schema = Schema::string(kPath);
    list.parameters.push_back(queryParameter("path", Schema::string(kPath).fallback("."),
                                             "The directory, relative to the root"));
    list.parameters.push_back(queryParameter("recursive", Schema::boolean().fallback(false),
                                             "Also what is below its directories"));
    list.answers = {{200, "A page of entries", listSchema<agent::FileStat>("FileList")}};
    list.handle = [&services](Call& call) {
        const agent::FileList page = services.workspaces.listFiles(
            call.who, call.param("workspace"), call.queryOr<std::string>("path", "."),
            call.queryOr("recursive", false), call.queryOr<std::size_t>("limit", 100),
            call.queryOr<std::string>("cursor", ""));
        return jsonResponse(listJson(jsonOf(page.items), toUtf8(page.next)));
    };
    all.push_back(std::move(list));

    Operation move = fileOperation("POST", ":move", "moveFile", "Move or rename");
    move.description = "The directories above its new place are made.";
    move.body_kind = Body::Json;
    move.body = Schema::object()
                    .required("from", Schema::string(kPath))
                    .required("to", Schema::string(kPath))
                    .example({{"from", "a.txt"}, {"to", "b/c.txt"}})
                    .named("MoveRequest");
    move.answers = {{204, "Moved", {}, {}}};
    move.handle = [&services](Call& call) {
        services.workspaces.moveFile(call.who, call.param("workspace"),
                                     call.body.at("from").get<std::string>(),
                                     call.body.at("to").get<std::string>());
        return emptyResponse();
    };
    all.push_back(std::move(move));

    Operation mkdir = fileOperation("POST", ":mkdir", "makeDirectory", "Make a directory");
    mkdir.description = "With its parents; one that exists is no error.";
    mkdir.body_kind = Body::Json;
    mkdir.body = Schema::object()
                     .required("path", Schema::string(kPath))
                     .example({{"path", "out/plots"}})
                     .named("MakeDirectoryRequest");
    mkdir.answers = {{204, "It is there", {}, {}}};
    mkdir.handle = [&services](Call& call) {
        services.workspaces.makeDirectory(call.who, call.param("workspace"),
                                          call.body.at("path").get<std::string>());
        return emptyResponse();
    };
    all.push_back(std::move(mkdir));
    return all;
}

}  // namespace hearth::rest
