#include "controller/workspaces/AgentErrors.h"

#include <array>

#include "base/Json.h"

namespace hearth::controller {
namespace {

struct Translation {
    const char* agent_code;
    ErrorCode code;
    const char* text;
    const char* hint;
};

constexpr std::array<Translation, 14> kRows{{
    {"NOT_FOUND", ErrorCode::NotFound, "no such file", ""},
    {"NOT_A_FILE", ErrorCode::Conflict, "not a regular file", ""},
    {"NOT_A_DIRECTORY", ErrorCode::Conflict, "a file is where a directory is needed", ""},
    {"IS_A_DIRECTORY", ErrorCode::Conflict, "it is a directory",
     "list it, or remove it with recursive=true"},
    {"EXISTS", ErrorCode::Conflict, "it exists already", ""},
    {"NO_SPACE", ErrorCode::DiskFull, "the workspace is full",
     "remove files, or use a pool with a larger workspace"},
    {"DENIED", ErrorCode::Forbidden, "the path may not be used",
     "use a path beneath the workspace that leads through no link out of it"},
    {"BAD_PATH", ErrorCode::InvalidArgument, "not a path beneath the workspace", ""},
    {"TOO_MANY", ErrorCode::QuotaExceeded, "too many executions at once in this workspace",
     "wait for one to end, or kill one"},
    {"FINGERPRINT_MISMATCH", ErrorCode::IdempotencyMismatch,
     "the Idempotency-Key was used with another request", "use a new key for a new request"},
    {"NO_ROOM", ErrorCode::DiskFull, "the code cannot be written: /.hearth/run is full",
     "remove what programs wrote beside their code in /.hearth/run, or use a pool with more "
     "memory"},
    {"UNWRITTEN", ErrorCode::Conflict, "the code cannot be written to /.hearth/run",
     "a program of this workspace has changed that folder; use another workspace"},
    {"BAD_REQUEST", ErrorCode::InvalidArgument, "the sandbox refused the request", ""},
    {"UNSUPPORTED", ErrorCode::Unsupported, "the sandbox does not offer this", ""},
}};

}  // namespace

Error clientError(const agent::AgentError& error, const std::string& path) {
    // Only the agent has seen the fault of a tenant's archive; its text is shown, cleaned.
    constexpr std::size_t kMostText = 600;
    const std::string text = toUtf8(std::string_view(error.what()).substr(0, kMostText));
    if (error.code() == "BAD_ARCHIVE") {
        return std::move(Error(ErrorCode::InvalidArgument, text)
                             .hint("nothing was unpacked; send a plain tar of files, directories "
                                   "and links"));
    }
    if (error.code() == "ARCHIVE_CONFLICT") {
        return std::move(Error(ErrorCode::Conflict, text).hint("nothing was unpacked"));
    }
    if (error.code() == "ARCHIVE_LIMIT") {
        return std::move(Error(ErrorCode::Conflict, "no archive can be made: " + text)
                             .hint("ask for the archive of a directory in it, or move it up"));
    }
    if (error.code() == "SPAWN_FAILED") {
        Error out(ErrorCode::Unavailable, "the sandbox could not start the process: " + text);
        if (text == "too many processes") out.hint("it has reached its limit of processes");
        return out;
    }
    if (error.code() == "CHANGED") return {ErrorCode::Conflict, text};
    for (const Translation& row : kRows) {
        if (error.code() != row.agent_code) continue;
        Error out(row.code, path.empty() ? row.text : path + ": " + row.text);
        if (*row.hint != '\0') out.hint(row.hint);
        return out;
    }
    return {ErrorCode::Internal, "the sandbox answered " + error.code()};
}

Error contextError(const agent::AgentError& error, const std::string& language) {
    if (error.code() == "BUSY") {
        return Error(ErrorCode::Conflict, "the context runs another execution")
            .hint(
                "wait for it, interrupt it by POST /v1/contexts/{context}/interrupt, or use "
                "another "
                "context");
    }
    if (error.code() == "NOT_FOUND") {
        return Error(ErrorCode::NotFound,
                     "the context's interpreter has ended, and its state is lost")
            .hint("make a new one in its workspace");
    }
    if (error.code() == "TOO_MANY") {
        return Error(ErrorCode::QuotaExceeded,
                     "the workspace has the most contexts that it may have")
            .hint("end one that is no longer needed");
    }
    if (error.code() == "UNSUPPORTED") {
        return Error(ErrorCode::Unsupported,
                     "the image supports no contexts" +
                         (language.empty() ? std::string() : " of language " + language))
            .hint("keep state in files of the workspace");
    }
    return clientError(error);
}

Error silentError(const std::string& workspace) {
    return Error(ErrorCode::Unavailable, "the sandbox of workspace " + workspace +
                                             " does not answer yet; it is asked again")
        .hint("its files are kept: try again")
        .retryAfter(std::chrono::seconds(1));
}

Error unknownClaimError() {
    return Error(ErrorCode::IdempotencyInFlight,
                 "a sandbox from before the restart has not yet reported its request")
        .hint("repeat the request: it is answered once every sandbox has answered")
        .retryAfter(std::chrono::seconds(1));
}

}  // namespace hearth::controller
