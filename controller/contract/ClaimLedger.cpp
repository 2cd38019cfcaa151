#include "controller/contract/ClaimLedger.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

namespace hearth::controller {

Json ledgerJson(const ClaimLedger& ledger) {
    Json json = {{"source", kClaimSources.of(ledger.source)}};
    if (ledger.pull_ms > 0) json["pullMs"] = ledger.pull_ms;
    if (ledger.unpack_ms > 0) json["unpackMs"] = ledger.unpack_ms;
    if (ledger.source == ClaimSource::Cold) {
        json["createMs"] = ledger.create_ms;
        json["warmMs"] = ledger.warm_ms;
    }
    json["queueMs"] = ledger.queue_ms;
    json["pickMs"] = ledger.pick_ms;
    json["bindMs"] = ledger.bind_ms;
    json["totalMs"] = ledger.total_ms;
    return json;
}

std::string serverTiming(const ClaimLedger& ledger) {
    std::string text;
    const auto add = [&](std::string_view name, double ms) {
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), ms,
                                       std::chars_format::fixed, 3)
                             .ptr;
        if (!text.empty()) text += ", ";
        text.append(name).append(";dur=").append(digits.data(), end);
    };
    std::string whole = "claim;desc=";
    whole += kClaimSources.of(ledger.source);
    add(whole, ledger.total_ms);
    eachStage(ledger, add);
    return text;
}

ClaimLedger ledgerFrom(const Json& json) {
    ClaimLedger ledger;
    const auto source = kClaimSources.find(json.at("source").get<std::string>());
    ledger.source = source.value_or(ClaimSource::Cold);  // a later version may know more sources
    ledger.pull_ms = json.value("pullMs", 0.0);
    ledger.unpack_ms = json.value("unpackMs", 0.0);
    ledger.create_ms = json.value("createMs", 0.0);
    ledger.warm_ms = json.value("warmMs", 0.0);
    ledger.queue_ms = json.at("queueMs").get<double>();
    ledger.pick_ms = json.at("pickMs").get<double>();
    ledger.bind_ms = json.at("bindMs").get<double>();
    ledger.total_ms = json.at("totalMs").get<double>();
    return ledger;
}

}  // namespace hearth::controller
