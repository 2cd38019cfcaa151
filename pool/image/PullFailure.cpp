#include "pool/image/PullFailure.h"

#include "pool/image/ProgramOutput.h"

namespace hearth::pool::image {

Error pullFailure(const std::string& reference, const std::string& said,
                  const std::string& reason) {
    const std::string what = "\"" + reference + "\"";
    if (holdsOneOf(said, {"no space left on device"})) {
        return Error(ErrorCode::DiskFull, "the disk that images are kept on is full")
            .hint("free disk space; nothing unfinished is left");
    }
    if (holdsOneOf(said, {"connection refused", "no such host", "i/o timeout", "no route to host",
                          "network is unreachable", "connection reset", "TLS handshake timeout",
                          "name resolution", "server misbehaving", "Client.Timeout",
                          "HTTP response to HTTPS client", "look like a TLS handshake", "x509:"})) {
        return Error(ErrorCode::Unavailable,
                     "the registry of " + what + " cannot be reached: " + reason)
            .hint("check the name, and that this machine can reach its registry");
    }
    if (holdsOneOf(said, {"unauthorized", "denied", "authentication required"})) {
        return Error(ErrorCode::NotFound,
                     "its registry does not let this server read " + what + ": " + reason)
            .hint("check the name; a private image is imported by an operator who may see it");
    }
    const bool missing =
        holdsOneOf(said, {"manifest unknown", "name unknown", "NAME_UNKNOWN", "not found",
                          "StatusCode: 404", "No such image", "does not exist", "no such object"});
    return Error(missing ? ErrorCode::NotFound : ErrorCode::InvalidArgument,
                 what + " cannot be copied from its registry: " + reason)
        .hint("check the name, the tag and the digest");
}

}  // namespace hearth::pool::image
