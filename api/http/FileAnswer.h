#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "pool/agent/connection/FileTypes.h"

namespace hearth::api {

/// A regular file to send: its facts, and a function that reads its bytes.
struct FileSource {
    agent::FileStat stat;
    std::string media = "application/octet-stream";
    std::string name;  ///< the name under which a browser saves it; empty: the URL's
    /// Passes `length` bytes from `offset` on, in pieces, to `sink` until that returns false.
    /// Throws Error(Conflict) if the file is no longer the one of `stat`.
    std::function<void(std::uint64_t offset, std::uint64_t length,
                       const std::function<bool(std::string_view)>& sink)>
        read;
};

/// The answer to GET and HEAD: whole, a range, 304 or 416; streamed if it is large. Headers stop a
/// browser from running it: the files are the tenant's, but the origin is the server's.
Response fileAnswer(const Request& request, FileSource source);
/// The quoted ETag.
std::string quotedEtag(const agent::FileStat& stat);

}  // namespace hearth::api
