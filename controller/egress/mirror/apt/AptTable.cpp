#include "controller/egress/mirror/apt/AptTable.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/http/Url.h"
#include "controller/egress/mirror/apt/AptRelease.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::broker {
namespace {

constexpr std::size_t kMostPackages = 400'000;
/// No field that is used is longer; longer lines are ignored.
constexpr std::size_t kMaxLine = 1'000;

std::optional<std::uint8_t> nibble(char c) {
    if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
    return std::nullopt;
}

std::optional<Digest> readDigest(std::string_view hex) {
    Digest out{};
    if (hex.size() != 2 * out.size()) return std::nullopt;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto high = nibble(hex[2 * i]);
        const auto low = nibble(hex[2 * i + 1]);
        if (!high || !low) return std::nullopt;
        out[i] = static_cast<std::uint8_t>(*high << 4U | *low);
    }
    return out;
}

std::optional<std::uint64_t> readNumber(std::string_view text) {
    std::uint64_t out = 0;
    const auto [end, wrong] = std::from_chars(text.begin(), text.end(), out);
    if (wrong != std::errc() || end != text.end()) return std::nullopt;
    return out;
}

}  // namespace

AptTable::Key AptTable::keyOf(std::string_view path) {
    const Digest whole = hearth::sha256(path);
    Key key{};
    std::copy_n(whole.begin(), key.size(), key.begin());
    return key;
}

std::optional<AptTable::Package> AptTable::find(std::string_view path) const {
    const Key key = keyOf(path);
    const auto found = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    if (found == entries_.end() || found->key != key) return std::nullopt;
    return Package{toHex(found->sha256), found->size};
}

void AptTableReader::add(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view piece = text.substr(0, end);
        const std::size_t room = kMaxLine - line_.size();
        overlong_ = overlong_ || piece.size() > room;
        line_.append(piece.substr(0, room));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
        endLine();
    }
}

void AptTableReader::endLine() {
    std::string_view line = line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
        endPackage();
    } else if (line.front() != ' ' && line.front() != '\t') {
        said_ = true;
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        Field* const field = equalsIgnoreCase(name, "Filename") ? &filename_
                             : equalsIgnoreCase(name, "SHA256") ? &sha256_
                             : equalsIgnoreCase(name, "Size")   ? &size_
                                                                : nullptr;
        if (field != nullptr) {
            field->twice = overlong_ || !field->value.empty();
            field->value = colon == std::string_view::npos ? "" : trim(line.substr(colon + 1));
        }
    }
    line_.clear();
    overlong_ = false;
}

void AptTableReader::endPackage() {
    std::string_view path = filename_.value;
    if (path.starts_with("./")) path.remove_prefix(2);
    const std::optional<Digest> digest = readDigest(toLower(sha256_.value));
    const std::optional<std::uint64_t> size = readNumber(size_.value);
    const bool clear = !filename_.twice && !sha256_.twice && !size_.twice;
    if (said_ && clear && digest && size && isAptPath(path)) {
        if (table_.entries_.size() >= kMostPackages) {
            throw Refused(kBadGateway, "too_large", "an index file names too many packages");
        }
        table_.entries_.push_back({AptTable::keyOf(path), *digest, *size});
    }
    filename_ = sha256_ = size_ = {};
    said_ = false;
}

AptTable AptTableReader::finish() {
    if (!line_.empty()) endLine();
    endPackage();
    auto& entries = table_.entries_;
    const auto same = [](const AptTable::Entry& a, const AptTable::Entry& b) {
        return a.sha256 == b.sha256 && a.size == b.size;
    };
    std::ranges::sort(entries, [](const AptTable::Entry& a, const AptTable::Entry& b) {
        return std::tie(a.key, a.sha256, a.size) < std::tie(b.key, b.sha256, b.size);
    });
    // Keeps one of several equal entries, and none if the entries of a key contradict each other.
    auto kept = entries.begin();
    for (auto at = entries.begin(); at != entries.end();) {
        const auto end = std::find_if(at, entries.end(),
                                      [&](const AptTable::Entry& e) { return e.key != at->key; });
        if (same(*at, *std::prev(end))) *kept++ = *at;
        at = end;
    }
    entries.erase(kept, entries.end());
    entries.shrink_to_fit();
    return std::move(table_);
}

}  // namespace hearth::broker
