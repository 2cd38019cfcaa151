#include "controller/egress/credentials/SecretMasker.h"

#include <algorithm>

namespace hearth::egress {
namespace {

constexpr std::size_t kPart = 64;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// True if a spelled secret may contain this byte.
bool isOfText(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7F) || (byte >= '\t' && byte <= '\r') || byte == 0;
}

}  // namespace

SecretMasker::SecretMasker(const std::vector<std::string>& hidden) {
    for (const std::string& secret : hidden) {
        const std::size_t most = std::min(secret.size(), kPart);
        longest_ = std::max(longest_, most * (kLongestSpelling + kLongestBreak));
        // The last part ends where the secret does, and is as long as the others.
        for (std::size_t at = 0; at < secret.size(); at += most) {
            add(std::string_view(secret).substr(std::min(at, secret.size() - most), most));
        }
    }
}

void SecretMasker::add(std::string_view part) {
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

/// True if the whole part has arrived: its last character ends at `end`.
bool SecretMasker::Part::step(const std::vector<Spelling>& spellings, std::size_t end) {
    std::uint64_t here = 0;
    for (const Spelling& one : spellings) {
        const std::uint64_t before = come[one.begin % kPlaces];
        here |= one.character == 0 ? before : ((before << 1U) | 1U) & places[one.character];
    }
    come[end % kPlaces] = here;
    return (here & last) != 0;
}

void SecretMasker::overwrite(const Part& part, const std::vector<Spelling>& spellings) {
    // Bit k: the characters after the first k + 1 follow from here. Spellings are sorted by their
    // ends, so all that begin at a place are done before it is used.
    std::vector<std::uint64_t> follow(came_.size() + 1, part.last);
    for (auto one = spellings.rbegin(); one != spellings.rend(); ++one) {
        const std::uint64_t after = follow[one->end];
        follow[one->begin] |=
            one->character == 0 ? after : (after & part.places[one->character]) >> 1U;
    }
    std::vector<std::uint64_t> come(came_.size() + 1);
    // The beginning may have been dropped with bytes already passed on, so it is assumed to match.
    for (std::size_t at = 0; !from_start_ && at < kLongestSpelling; ++at) come[at] = follow[at];
    for (const Spelling& one : spellings) {
        const std::uint64_t before = come[one.begin];
        if (one.character == 0) {
            come[one.end] |= before & follow[one.end];
            continue;
        }
        const std::uint64_t here =
            ((before << 1U) | 1U) & part.places[one.character] & follow[one.end];
        if (here == 0) continue;
        come[one.end] |= here;
        std::fill(masked_.begin() + static_cast<std::ptrdiff_t>(one.begin),
                  masked_.begin() + static_cast<std::ptrdiff_t>(one.end), '*');
    }
}

std::string SecretMasker::pass(std::string_view bytes) {
    // Searches the unmasked input, because one secret may begin within another.
    const std::size_t known = came_.size();
    came_.append(bytes);
    masked_.append(bytes);
    std::vector<bool> found(parts_.size());
    for (std::size_t end = known + 1; end <= came_.size(); ++end) {
        at_.clear();
        addSpellings(came_, end, at_);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (parts_[i].step(at_, end)) found[i] = true;
        }
    }
    if (std::find(found.begin(), found.end(), true) != found.end()) {
        at_.clear();
        for (std::size_t end = 1; end <= came_.size(); ++end) addSpellings(came_, end, at_);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (found[i]) overwrite(parts_[i], at_);
        }
    }
    return release(came_.size() - held());
}

std::string SecretMasker::pause() {
    const bool line = came_.ends_with('\n') || came_.ends_with('\r');
    return release(line ? came_.size() : gone_);
}

std::size_t SecretMasker::held() const {
    std::size_t n = 0;
    constexpr auto kNone = std::string::npos;
    std::size_t after_line = kNone;  // set while only \r separates `at` from a line's end
    for (std::size_t at = came_.size(); at > gone_ && n + 1 < longest_; --at, ++n) {
        const char c = came_[at - 1];
        if (!isOfText(c)) return n;
        if (c == '\n' && after_line != kNone) return after_line;
        if (c == '\n') {
            after_line = n;
        } else if (c != '\r') {
            after_line = kNone;
        }
    }
    return n;
}

std::string SecretMasker::release(std::size_t until) {
    std::string out = masked_.substr(gone_, until - gone_);
    // A spelling may begin in bytes already passed on. Places keep their number modulo kPlaces.
    const std::size_t keep = std::min(until, kLongestBreak);
    const std::size_t drop = (until - keep) / kPlaces * kPlaces;
    if (drop > 0) from_start_ = false;
    came_.erase(0, drop);
    masked_.erase(0, drop);
    gone_ = until - drop;
    return out;
}

}  // namespace hearth::egress
