#include "controller/egress/mirror/apt/AptRelease.h"

#include <algorithm>
#include <charconv>

#include "base/http/Url.h"
#include "controller/egress/mirror/apt/AptSource.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::broker {
namespace {

constexpr std::size_t kMaxPath = 400;
constexpr std::size_t kMostFiles = 50'000;
constexpr std::string_view kByHash = "/by-hash/";

[[noreturn]] void bad(const std::string& what) {
    throw Refused(kBadGateway, "bad_index", "the archive's Release: " + what);
}

std::string_view takeLine(std::string_view& text) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

/// The signed part of a clear-signed text (RFC 9580 section 7); another text is returned whole.
std::string_view signedPart(std::string_view text) {
    constexpr std::string_view kBegin = "-----BEGIN PGP SIGNED MESSAGE-----";
    constexpr std::string_view kEnd = "-----BEGIN PGP SIGNATURE-----";
    if (text.find(kBegin) == std::string_view::npos) return text;
    if (takeLine(text) != kBegin) bad("there is text before the signed part");
    while (!takeLine(text).empty()) {
        if (text.empty()) bad("it ends before the signed part");
    }
    const std::size_t end = text.find("\n" + std::string(kEnd));
    if (end == std::string_view::npos) bad("its signature is missing");
    return text.substr(0, end + 1);
}

/// Reads a line of a hash section: " HEX SIZE PATH".
void readFile(std::string_view line, const std::string& algorithm,
              const std::vector<std::string>& components, AptRelease& release) {
    const std::string hex = toLower(takeWord(line));
    const std::string_view size = takeWord(line);
    const std::string_view path = takeWord(line);
    const std::string_view component = path.substr(0, path.find('/'));
    if (std::ranges::find(components, component) == components.end()) return;
    std::uint64_t bytes = 0;
    const auto [end, wrong] = std::from_chars(size.begin(), size.end(), bytes);
    if (wrong != std::errc() || end != size.end() || !isAptPath(path) ||
        ContentHash{algorithm, hex}.key().empty()) {
        return;  // nobody can fetch such a file
    }
    if (release.files.size() >= kMostFiles) bad("it names too many files");
    const auto [known, fresh] = release.files.try_emplace(std::string(path));
    AptRelease::File& file = known->second;
    std::string& hash = algorithm == "sha256" ? file.sha256 : file.sha512;
    if ((!fresh && file.size != bytes) || (!hash.empty() && hash != hex)) {
        bad("it contradicts itself about " + std::string(path));
    }
    file.size = bytes;
    hash = hex;
}

}  // namespace

bool isAptPath(std::string_view path) {
    if (path.empty() || path.size() > kMaxPath) return false;
    char before = '/';
    for (const char c : path) {
        const bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (before == '/' && (c == '.' || c == '/')) return false;
        if (!alphanumeric && std::string_view("/._-+~:%@,=").find(c) == std::string_view::npos) {
            return false;
        }
        before = c;
    }
    return before != '/';
}

const std::pair<const std::string, AptRelease::File>* AptRelease::find(
    std::string_view path) const {
    const std::size_t mark = path.rfind(kByHash);
    if (mark == std::string_view::npos) {
        const auto found = files.find(path);
        return found == files.end() ? nullptr : &*found;
    }
    const std::string directory(path.substr(0, mark + 1));
    const std::string_view hash = path.substr(mark + kByHash.size());
    for (auto at = files.lower_bound(directory);
         at != files.end() && at->first.starts_with(directory); ++at) {
        if (at->first.find('/', directory.size()) != std::string::npos) continue;
        if (hash == "SHA256/" + at->second.sha256) return &*at;
        if (!at->second.sha512.empty() && hash == "SHA512/" + at->second.sha512) return &*at;
    }
    return nullptr;
}

AptRelease parseAptRelease(std::string_view text, const std::vector<std::string>& components) {
    AptRelease release;
    text = signedPart(text);
    bool told = false;
    std::string algorithm;  // of the present section; empty: no section of hashes
    while (!text.empty()) {
        std::string_view line = takeLine(text);
        if (line.starts_with(' ') || line.starts_with('\t')) {
            if (!algorithm.empty()) readFile(line, algorithm, components, release);
            continue;
        }
        const std::string name = toLower(line.substr(0, line.find(':')));
        if (name.size() == line.size() && !line.empty()) bad("a line of it is no field");
        algorithm = name == "sha256" || name == "sha512" ? name : "";
        told = told || name == "sha256";
        if (name == "acquire-by-hash") {
            release.by_hash = equalsIgnoreCase(trim(line.substr(name.size() + 1)), "yes");
        }
    }
    if (!told) bad("it lists no SHA256 of its files");
    // Files listed only in the other section cannot be checked.
    std::erase_if(release.files, [](const auto& file) { return file.second.sha256.empty(); });
    return release;
}

}  // namespace hearth::broker
