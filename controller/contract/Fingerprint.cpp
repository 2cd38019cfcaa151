#include "controller/contract/Fingerprint.h"

#include "base/Digest.h"

namespace hearth::controller {

std::string fingerprintOf(std::string_view secret_key, std::string_view request) {
    const std::string key = rawBytes(hmacSha256(secret_key, "request fingerprint"));
    return toHex(hmacSha256(key, request));
}

}  // namespace hearth::controller
