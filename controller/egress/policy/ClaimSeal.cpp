#include "controller/egress/policy/ClaimSeal.h"

#include <optional>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/JsonText.h"
#include "controller/egress/policy/Seal.h"

namespace hearth::egress {

ClaimSeal::ClaimSeal(std::string_view secret_key)
    : key_(rawBytes(hmacSha256(secret_key, "claim"))),
      proof_key_(rawBytes(hmacSha256(secret_key, "note"))) {}

std::string ClaimSeal::prove(std::string_view text, const std::string& claim) const {
    std::string all = claim;
    all += '\0';
    all += text;
    return toHex(hmacSha256(proof_key_, all));
}

std::string ClaimSeal::close(const ClaimReach& reach, const std::string& claim) const {
    Json kept{{"network", kNetworkModes.of(reach.mode)},
              {"allow", reach.allow},
              {"tenant", reach.tenant},
              {"workspace", reach.workspace}};
    if (!reach.keys.is_null()) kept["keys"] = reach.keys;
    return seal(key_, claim, dumpJson(kept));
}

ClaimReach ClaimSeal::open(const std::string& sealed, const std::string& claim) const {
    const std::optional<std::string> text = unseal(key_, claim, sealed);
    if (!text) {
        throw Error(ErrorCode::InvalidArgument,
                    "the seal is not this server's, or another claim's");
    }
    const Json kept = parseJson(*text);
    ClaimReach reach;
    reach.mode = kNetworkModes.find(kept.at("network").get<std::string>()).value_or(reach.mode);
    reach.allow = kept.at("allow").get<std::vector<std::vector<std::string>>>();
    reach.tenant = kept.at("tenant").get<std::string>();
    reach.workspace = kept.at("workspace").get<std::string>();
    if (kept.contains("keys")) reach.keys = kept.at("keys");
    return reach;
}

}  // namespace hearth::egress
