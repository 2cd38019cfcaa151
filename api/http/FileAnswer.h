#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "pool/agent/connection/FileTypes.h"

namespace hearth::api {

/// A regular file to send: its facts, and how its bytes are read.
struct FileSource {
    agent::FileStat stat;
    std::string media = "application/octet-stream";
    std::string name;  ///< what a browser saves it as; empty: as the URL says
    /// Gives `length` bytes from `offset` on, in pieces, to `sink` until that says false. Throws
    /// Error(Conflict) if the file is no longer the one of `stat`.
    std::function<void(std::uint64_t offset, std::uint64_t length,
                       const std::function<bool(std::string_view)>& sink)>
        read;
};

/// The answer to GET and HEAD: whole, a range, 304 or 416; streamed if it is large. Headers keep a
/// browser from running it: files are their tenant's, the origin is ours.
Response fileAnswer(const Request& request, FileSource source);
/// The quoted ETag.
std::string quotedEtag(const agent::FileStat& stat);

}  // namespace hearth::api
