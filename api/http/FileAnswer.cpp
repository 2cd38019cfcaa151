#include "api/http/FileAnswer.h"

#include <algorithm>

#include "api/http/Problem.h"
#include "base/Units.h"
#include "base/http/ByteRange.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

/// The bytes read before the head is sent, so that read errors still become complete answers.
constexpr std::uint64_t kWholeAtOnce = 256U << 10U;

Response fileHead(const FileSource& source) {
    const std::string name = source.name.empty() ? "" : "; filename=\"" + source.name + "\"";
    Response response;
    response.headers = {{"Content-Type", source.media},
                        {"Content-Disposition", "attachment" + name},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Content-Security-Policy", "sandbox; default-src 'none'"},
                        {"Cache-Control", "private, no-cache"},
                        {"Accept-Ranges", "bytes"},
                        {"X-File-Mode", formatFileMode(source.stat.mode)}};
    if (!source.stat.etag.empty()) response.headers.add("ETag", quotedEtag(source.stat));
    return response;
}

/// Reads the range in pieces. Its length must be the one announced in the head.
void readRange(const FileSource& source, const ByteRange& range,
               const std::function<bool(std::string_view)>& sink) {
    std::uint64_t left = range.length;
    source.read(range.offset, range.length, [&left, &sink](std::string_view bytes) {
        bytes =
            bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes.size())));
        left -= bytes.size();
        return sink(bytes);
    });
    if (left > 0) {
        throw Error(ErrorCode::Conflict, "the file shrank while it was read").hint("Read it again");
    }
}

ByteRange rangeOf(const Request& request, const agent::FileStat& stat) {
    const std::optional<std::string> header = request.header("Range");
    const ByteRange whole{ByteRange::Kind::Whole, 0, stat.size};
    if (!header) return whole;
    if (const std::optional<std::string> condition = request.header("If-Range")) {
        if (trim(*condition) != quotedEtag(stat)) return whole;
    }
    return parseRange(*header, stat.size);
}

}  // namespace

std::string quotedEtag(const agent::FileStat& stat) {
    return "\"" + stat.etag + "\"";
}

Response fileAnswer(const Request& request, FileSource source) {
    const agent::FileStat& stat = source.stat;
    Response response = fileHead(source);
    const std::string if_none_match = request.header("If-None-Match").value_or("");
    if (!stat.etag.empty() && etagMatches(if_none_match, quotedEtag(stat))) {
        response.status = 304;
        return response;
    }
    const ByteRange range = rangeOf(request, stat);
    const std::string of = "/" + std::to_string(stat.size);
    if (range.kind == ByteRange::Kind::Unsatisfiable) {
        HttpProblem refusal;
        refusal.status = 416;
        refusal.error_code = "RANGE_NOT_SATISFIABLE";
        refusal.title = "The range is not in the file";
        refusal.message = "the file has " + std::to_string(stat.size) + " bytes";
        refusal.hint = "Ask for a range before that end";
        Response refused = problem(refusal, problemContext(request));
        refused.headers.add("Content-Range", "bytes *" + of);
        return refused;
    }
    if (range.kind == ByteRange::Kind::Part) {
        response.status = 206;
        response.headers.add("Content-Range", "bytes " + std::to_string(range.offset) + "-" +
                                                  std::to_string(range.offset + range.length - 1) +
                                                  of);
    }
    if (range.length <= kWholeAtOnce && request.method() != "HEAD") {
        std::string content;
        content.reserve(static_cast<std::size_t>(range.length));
        if (range.length > 0) {
            readRange(source, range, [&content](std::string_view bytes) {
                content.append(bytes);
                return true;
            });
        }
        response.body = std::move(content);
        return response;
    }
    response.length = range.length;
    response.body = BodyWriter(
        [source = std::move(source), range](const std::function<void(std::string_view)>& write) {
            readRange(source, range, [&write](std::string_view bytes) {
                write(bytes);
                return true;
            });
        });
    return response;
}

}  // namespace hearth::api
