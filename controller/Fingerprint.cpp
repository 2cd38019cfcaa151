#include "controller/Fingerprint.h"

#include "base/Ids.h"

namespace hearth::controller {

std::string fingerprintOf(std::string_view secret_key, std::string_view request) {
    const Digest key = hmacSha256(secret_key, "request fingerprint");
    return toHex(hmacSha256({reinterpret_cast<const char*>(key.data()), key.size()}, request));
}

}  // namespace hearth::controller
