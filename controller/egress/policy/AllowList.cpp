#include "controller/egress/policy/AllowList.h"

#include <algorithm>
#include <charconv>

#include "base/Error.h"
#include "base/http/Url.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;

bool isLabel(std::string_view label) {
    if (label.empty() || label.size() > kMaxLabel || label.front() == '-' || label.back() == '-') {
        return false;
    }
    return std::all_of(label.begin(), label.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
}

/// Checks a name in lower case. A last label that begins with a digit belongs to no domain, only to
/// spellings such as "127.1", "2130706433", "0x7f000001".
bool isName(std::string_view name) {
    if (name.empty() || name.size() > kMaxName) return false;
    std::string_view label;
    while (true) {
        const std::size_t dot = name.find('.');
        label = name.substr(0, dot);
        if (!isLabel(label)) return false;
        if (dot == std::string_view::npos) break;
        name.remove_prefix(dot + 1);
    }
    return label.front() < '0' || label.front() > '9';
}

/// Removes ":port" from the end; false if that is not a port.
bool takePort(std::string_view& text, std::uint16_t& port) {
    const bool bracketed = text.starts_with('[');
    const std::size_t from = bracketed ? text.find(']') : 0;
    if (from == std::string_view::npos) return false;
    const std::size_t colon = text.find(':', from);
    if (colon == std::string_view::npos) return true;
    // An IPv6 address without brackets has no port.
    if (!bracketed && text.find(':', colon + 1) != std::string_view::npos) return true;
    const std::string_view digits = text.substr(colon + 1);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value == 0 ||
        value > 65'535) {
        return false;
    }
    port = static_cast<std::uint16_t>(value);
    text = text.substr(0, colon);
    return true;
}

/// Removes the brackets of "[v6]"; false if one is missing.
bool takeBrackets(std::string_view& text) {
    if (!text.starts_with('[')) return text.find(']') == std::string_view::npos;
    if (!text.ends_with(']')) return false;
    text = text.substr(1, text.size() - 2);
    return text.find(':') != std::string_view::npos;
}

}  // namespace

std::optional<Destination> Destination::parse(std::string_view authority, std::uint16_t otherwise) {
    Destination out;
    out.port = otherwise;
    const bool bracketed = authority.starts_with('[');
    if (!takePort(authority, out.port) || !takeBrackets(authority)) return std::nullopt;
    out.literal = IpAddress::parse(authority);
    if (out.literal) {
        // In an authority, an IPv6 address has brackets and an IPv4 address has none.
        if (bracketed != (authority.find(':') != std::string_view::npos)) return std::nullopt;
        out.host = out.literal->text();
        return out;
    }
    if (bracketed) return std::nullopt;
    out.host = toLower(authority);
    if (out.host.ends_with('.')) out.host.pop_back();
    if (!isName(out.host)) return std::nullopt;
    return out;
}

std::string Destination::text() const {
    const bool v6 = literal && !literal->isV4();
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<AllowList::Rule> AllowList::parse(std::string_view entry) {
    Rule rule;
    const bool bracketed = entry.starts_with('[');
    if (!takePort(entry, rule.port) || !takeBrackets(entry)) return std::nullopt;
    rule.range = IpRange::parse(entry);
    if (rule.range) return rule;
    if (bracketed || entry.empty()) return std::nullopt;
    if (entry == "*") {
        rule.any = true;
        return rule;
    }
    rule.name = toLower(entry);
    if (rule.name.starts_with("*.")) {
        rule.below = true;
        rule.name.erase(0, 1);
        if (!isName(std::string_view(rule.name).substr(1))) return std::nullopt;
    } else if (!isName(rule.name)) {
        return std::nullopt;
    }
    return rule;
}

std::optional<std::string> AllowList::wrong(std::string_view entry) {
    if (parse(entry)) return std::nullopt;
    return "\"" + std::string(entry) +
           "\" is neither a host (api.example.com, *.example.com) nor a range of addresses "
           "(203.0.113.0/24), with or without :port";
}

AllowList::AllowList(const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
        std::optional<Rule> rule = parse(entry);
        if (!rule) throw Error(ErrorCode::InvalidArgument, *wrong(entry));
        rules_.push_back(std::move(*rule));
    }
}

bool AllowList::allows(const Destination& destination) const {
    return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
        const bool port = rule.port == 0
                              ? destination.port == kHttpPort || destination.port == kHttpsPort
                              : destination.port == rule.port;
        if (!port) return false;
        if (rule.any) return true;
        if (rule.range) return destination.literal && rule.range->contains(*destination.literal);
        if (destination.literal) return false;
        return rule.below ? destination.host.ends_with(rule.name) : destination.host == rule.name;
    });
}

}  // namespace hearth::egress
