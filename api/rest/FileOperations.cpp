#include <algorithm>

#include "api/http/Problem.h"
#include "api/http/Url.h"
#include "api/rest/Answers.h"
#include "api/rest/ByteRange.h"
#include "api/rest/Tables.h"
#include "api/rest/Views.h"

namespace hearth::rest {
namespace {

using controller::Services;

/// What is read before the head is sent, so that its errors are still proper answers.
constexpr std::uint64_t kWholeAtOnce = 256U << 10U;

Operation operation(std::string method, std::string pattern, std::string id, std::string summary) {
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

std::string quotedEtag(const agent::FileStat& stat) {
    return "\"" + stat.etag + "\"";
}

/// What a browser must not run: a workspace's files are its tenant's, the origin is ours.
api::Response fileHead(const agent::FileStat& stat) {
    api::Response response;
    response.headers = {{"Content-Type", "application/octet-stream"},
                        {"Content-Disposition", "attachment"},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Content-Security-Policy", "sandbox; default-src 'none'"},
                        {"Cache-Control", "private, no-cache"},
                        {"Accept-Ranges", "bytes"},
                        {"X-File-Mode", fileJson(stat).at("mode").get<std::string>()}};
    if (!stat.etag.empty()) response.headers.emplace_back("ETag", quotedEtag(stat));
    return response;
}

struct Part {
    std::string workspace;
    std::string path;
    std::string etag;
    ByteRange range;
};

/// Reads the part, in pieces. What was promised in the head must be what comes: a file that has
/// changed meanwhile is an error.
void readPart(const Services& services, const controller::Principal& who, const Part& part,
              const std::function<bool(std::string_view)>& sink) {
    std::uint64_t left = part.range.length;
    services.workspaces.readFile(
        who, part.workspace, part.path, part.range.offset, part.range.length,
        [&part](const agent::FileStat& now) {
            if (now.etag != part.etag) {
                throw Error(ErrorCode::Conflict, "the file changed while it was read")
                    .hint("Read it again");
            }
        },
        [&left, &sink](std::string_view bytes) {
            bytes = bytes.substr(
                0, static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes.size())));
            left -= bytes.size();
            return sink(bytes);
        });
    if (left > 0) {
        throw Error(ErrorCode::Conflict, "the file shrank while it was read").hint("Read it again");
    }
}

ByteRange rangeOf(const api::Request& request, const agent::FileStat& stat) {
    const std::optional<std::string> header = request.header("Range");
    const ByteRange whole{ByteRange::Kind::Whole, 0, stat.size};
    if (!header) return whole;
    if (const std::optional<std::string> condition = request.header("If-Range")) {
        if (api::trim(*condition) != quotedEtag(stat)) return whole;
    }
    return parseRange(*header, stat.size);
}

api::Response readResponse(const Services& services, const Call& call) {
    const std::string workspace = call.param("workspace");
    const std::string path = pathParam(call);
    agent::FileStat stat = services.workspaces.stat(call.who, workspace, path);
    if (stat.type == "symlink") {
        // Where it leads is the sandbox's affair: opening it tells, and refuses a way out.
        services.workspaces.readFile(
            call.who, workspace, path, 0, 1,
            [&stat](const agent::FileStat& opened) { stat = opened; },
            [](std::string_view) { return false; });
    }
    if (stat.type != "file") {
        throw Error(ErrorCode::Conflict, "this path is a " + stat.type + ", not a file")
            .hint("List a directory by GET …/files?path=");
    }
    api::Response response = fileHead(stat);
    const std::string if_none_match = call.request.header("If-None-Match").value_or("");
    if (!stat.etag.empty() && etagMatches(if_none_match, quotedEtag(stat))) {
        response.status = 304;
        return response;
    }
    const ByteRange range = rangeOf(call.request, stat);
    const std::string of = "/" + std::to_string(stat.size);
    if (range.kind == ByteRange::Kind::Unsatisfiable) {
        api::HttpProblem refusal;
        refusal.status = 416;
        refusal.error_code = "RANGE_NOT_SATISFIABLE";
        refusal.title = "The range is not in the file";
        refusal.message = "the file has " + std::to_string(stat.size) + " bytes";
        refusal.hint = "Ask for a range before that end";
        api::Response refused = api::problem(refusal, api::problemContext(call.request));
        refused.headers.emplace_back("Content-Range", "bytes *" + of);
        return refused;
    }
    if (range.kind == ByteRange::Kind::Part) {
        response.status = 206;
        response.headers.emplace_back("Content-Range",
                                      "bytes " + std::to_string(range.offset) + "-" +
                                          std::to_string(range.offset + range.length - 1) + of);
    }
    const Part part{workspace, path, stat.etag, range};
    const bool head_only = call.request.method() == "HEAD";
    if (range.length <= kWholeAtOnce && !head_only) {
        std::string content;
        if (range.length > 0) {
            readPart(services, call.who, part, [&content](std::string_view bytes) {
                content.append(bytes);
                return true;
            });
        }
        response.body = std::move(content);
        return response;
    }
    response.length = range.length;
    response.body = api::BodyWriter(
        [&services, who = call.who, part](const std::function<void(std::string_view)>& write) {
            readPart(services, who, part, [&write](std::string_view bytes) {
                write(bytes);
                return true;
            });
        });
    return response;
}

Operations contentOperations(const Services& services) {
    Operations all;
    const std::vector<Parameter> conditions{
        headerParameter("Range", Schema::string(), "One range of bytes; more than one: the whole"),
        headerParameter("If-None-Match", Schema::string(), "304 where the ETag is still this one")};
    const std::vector<Answer> answers{
        {200, "The bytes, with ETag and X-File-Mode", {}, "application/octet-stream"},
        {206, "The range of it", {}, "application/octet-stream"},
        {304, "Not changed", {}, {}},
        {416, "The range lies behind the end", {}, "application/problem+json"}};

    Operation get = operation("GET", "/{path...}", "readFile", "Read a file");
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
                    {416, "The range lies behind the end", {}, {}}};
    all.push_back(std::move(get));
    all.push_back(std::move(head));

    Operation put = operation("PUT", "/{path...}", "writeFile", "Write a file");
    put.description =
        "The raw body, streamed. Parents are created; the file is replaced at once, "
        "so a reader sees the old or the new content.";
    put.body_kind = Body::Raw;
    put.parameters = {
        headerParameter("X-File-Mode", Schema::string().example("0755"), "Permission bits, octal")};
    put.answers = {{200, "What stands there now", fileEntrySchema(), {}}};
    put.problems.insert(put.problems.end(), {ErrorCode::PayloadTooLarge, ErrorCode::DiskFull});
    put.handle = [&services](Call& call) {
        const std::string path = pathParam(call);
        std::optional<unsigned> mode;
        if (const std::optional<std::string> text = call.request.header("X-File-Mode")) {
            mode = parseMode(api::trim(*text));
            if (!mode) {
                throw Error(ErrorCode::InvalidArgument, "X-File-Mode is not a file mode")
                    .hint("Send octal permission bits, for example 0644");
            }
        }
        const agent::FileStat stat = services.workspaces.writeFile(
            call.who, call.param("workspace"), path, mode,
            [&call](char* out, std::size_t size) { return call.request.readSome(out, size); });
        api::Response response = jsonResponse(fileJson(stat));
        if (!stat.etag.empty()) response.headers.emplace_back("ETag", quotedEtag(stat));
        return response;
    };
    all.push_back(std::move(put));

    Operation remove =
        operation("DELETE", "/{path...}", "removeFile", "Remove a file or directory");
    remove.parameters = {queryParameter("recursive", Schema::boolean().fallback(false),
                                        "A directory with all that is in it")};
    remove.answers = {{204, "Removed", {}, {}}};
    remove.handle = [&services](Call& call) {
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

    Operation list = operation("GET", "", "listFiles", "List a directory");
    list.parameters = pageParameters();
    list.parameters[1].schema = Schema::string(kPath);
    list.parameters.push_back(queryParameter("path", Schema::string(kPath).fallback("."),
                                             "The directory, relative to the root"));
    list.parameters.push_back(queryParameter("recursive", Schema::boolean().fallback(false),
                                             "Also what is below its directories"));
    list.answers = {{200, "A page of entries", listSchema(fileEntrySchema(), "FileList"), {}}};
    list.handle = [&services](Call& call) {
        const agent::FileList page = services.workspaces.listFiles(
            call.who, call.param("workspace"), call.queryOr<std::string>("path", "."),
            call.queryOr("recursive", false), call.queryOr<std::size_t>("limit", 100),
            call.queryOr<std::string>("cursor", ""));
        Json items = Json::array();
        for (const agent::FileStat& stat : page.items) items.push_back(fileJson(stat));
        return jsonResponse(listJson(std::move(items), toUtf8(page.next)));
    };
    all.push_back(std::move(list));

    Operation move = operation("POST", ":move", "moveFile", "Move or rename");
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

    Operation mkdir = operation("POST", ":mkdir", "makeDirectory", "Make a directory");
    mkdir.description = "With its parents; one that exists is no error.";
    mkdir.body_kind = Body::Json;
    mkdir.body =
        Schema::object().required("path", Schema::string(kPath)).named("MakeDirectoryRequest");
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
