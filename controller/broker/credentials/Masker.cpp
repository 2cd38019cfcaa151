#include "controller/broker/credentials/Masker.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace hearth::broker {
namespace {

constexpr std::size_t kPart = 64;
constexpr std::size_t kLongestEntity = 10;  // &#x00002f;

bool isPrintable(char c) {
    return c >= 0x20 && c <= 0x7E;
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool startsWith(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                      [](char a, char b) { return a == lower(b); });
}

/// Of a whole number of ASCII.
std::optional<unsigned char> characterOf(std::string_view digits, int base) {
    unsigned value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
        value > 0x7F) {
        return std::nullopt;
    }
    return static_cast<unsigned char>(value);
}

/// The entity that `text` begins with, and its length.
std::optional<std::pair<unsigned char, std::size_t>> entityAt(std::string_view text) {
    struct Named {
        std::string_view name;
        unsigned char character;
    };
    constexpr std::array<Named, 5> kNamed{
        {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
    for (const Named& one : kNamed) {
        if (startsWith(text, one.name)) return {{one.character, one.name.size()}};
    }
    if (!startsWith(text, "&#")) return std::nullopt;
    const std::size_t end = text.substr(0, kLongestEntity).find(';');
    if (end == std::string_view::npos) return std::nullopt;
    const bool hex = lower(text[2]) == 'x';
    const std::size_t digits = hex ? 3 : 2;
    const auto character = characterOf(text.substr(digits, end - digits), hex ? 16 : 10);
    if (!character) return std::nullopt;
    return {{*character, end + 1}};
}

}  // namespace

Masker::Masker(const std::vector<std::string>& hidden) {
    for (const std::string& secret : hidden) {
        const std::size_t most = std::min(secret.size(), kPart);
        longest_ = std::max(longest_, most * kLongestEntity);
        // The last part ends where the secret does, and so is as long as the others.
        for (std::size_t at = 0; at < secret.size(); at += most) {
            add(std::string_view(secret).substr(std::min(at, secret.size() - most), most));
        }
    }
}

void Masker::add(std::string_view part) {
    Part out;
    for (std::size_t i = 0; i < part.size(); ++i) {
        const std::uint64_t place = std::uint64_t{1} << i;
        for (const char c : {lower(part[i]), upper(part[i])}) {
            out.places[static_cast<unsigned char>(c) & 0x7FU] |= place;
        }
        out.last = place;
    }
    parts_.push_back(out);
}

std::vector<Masker::Spelling> Masker::spellingsIn(std::string_view text) {
    std::vector<Spelling> all;
    all.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::string_view rest = text.substr(at);
        const auto add = [&](unsigned char character, std::size_t length) {
            all.push_back({at, at + length, character});
        };
        const auto addCoded = [&](std::size_t prefix, std::size_t digits) {
            if (rest.size() < prefix + digits) return;
            const auto coded = characterOf(rest.substr(prefix, digits), 16);
            if (coded) add(*coded, prefix + digits);
        };
        if (!isPrintable(rest[0])) continue;
        add(static_cast<unsigned char>(rest[0]), 1);
        if (rest[0] == '+') add(' ', 1);
        if (rest[0] == '%') addCoded(1, 2);
        if (rest[0] == '\\' && rest.size() > 1 && isPrintable(rest[1])) {
            add(static_cast<unsigned char>(rest[1]), 2);
            if (lower(rest[1]) == 'u') addCoded(2, 4);
        }
        if (rest[0] == '&') {
            if (const auto entity = entityAt(rest)) add(entity->first, entity->second);
        }
    }
    return all;
}

void Masker::mask(const Part& part, const std::vector<Spelling>& spellings, std::string& out) {
    // Bit k: up to here came the first k + 1 characters, by any way of reading what came.
    std::vector<std::uint64_t> come(out.size() + 1);
    bool found = false;
    const auto step = [&](const Spelling& one) {
        return ((come[one.begin] << 1U) | 1U) & part.places[one.character];
    };
    for (const Spelling& one : spellings) {
        const std::uint64_t here = step(one);
        come[one.end] |= here;
        found = found || (here & part.last) != 0;
    }
    if (!found) return;
    // Bit k: after the first k + 1, the others follow from here.
    std::vector<std::uint64_t> follow(out.size() + 1, part.last);
    for (auto one = spellings.rbegin(); one != spellings.rend(); ++one) {
        const std::uint64_t whole = follow[one->end] & part.places[one->character];
        follow[one->begin] |= whole >> 1U;
        if ((step(*one) & whole) == 0) continue;
        std::fill(out.begin() + static_cast<std::ptrdiff_t>(one->begin),
                  out.begin() + static_cast<std::ptrdiff_t>(one->end), '*');
    }
}

std::string Masker::take(std::string_view bytes, bool last) {
    // Looked for in what came, since one secret may begin within another.
    std::string came = std::exchange(kept_, {});
    std::string out = std::exchange(masked_, {});
    came.append(bytes);
    out.append(bytes);
    const std::vector<Spelling> spellings = spellingsIn(came);
    for (const Part& part : parts_) mask(part, spellings, out);
    std::size_t keep = 0;
    while (!last && keep < came.size() && keep + 1 < longest_ &&
           isPrintable(came[came.size() - 1 - keep])) {
        ++keep;
    }
    kept_ = came.substr(came.size() - keep);
    masked_ = out.substr(out.size() - keep);
    out.resize(out.size() - keep);
    return out;
}

}  // namespace hearth::broker
