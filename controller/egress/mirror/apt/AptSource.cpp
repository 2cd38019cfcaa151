#include "controller/egress/mirror/apt/AptSource.h"

#include <algorithm>

#include "base/Error.h"
#include "controller/egress/mirror/apt/AptRelease.h"
#include "controller/egress/mirror/store/Fetcher.h"

namespace hearth::broker {
namespace {

constexpr std::size_t kMostSources = 32;
constexpr std::size_t kMaxSource = 1'000;
constexpr std::string_view kBlank = " \t";
constexpr const char* kUsualKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
constexpr const char* kForm = "write \"https://HOST/debian SUITE COMPONENT\"";

[[noreturn]] void fail(const std::string& what, const std::string& hint = kForm) {
    throw Error(ErrorCode::InvalidArgument, what).hint(hint);
}

/// Reads the text between the brackets.
void readOptions(std::string_view options, AptSource& source) {
    while (true) {
        const std::string_view option = takeWord(options);
        if (option.empty()) return;
        constexpr std::string_view kSignedBy = "signed-by=";
        if (option == "trusted=yes") {
            source.trusted = true;
        } else if (option.starts_with(kSignedBy) && option.substr(kSignedBy.size(), 1) == "/" &&
                   isAptPath(option.substr(kSignedBy.size() + 1))) {
            source.keyring = option.substr(kSignedBy.size());
        } else {
            fail("\"" + std::string(option) + "\" is no option of an archive here",
                 "signed-by=/FILE names a keyring in the image, trusted=yes does without one");
        }
    }
}

}  // namespace

std::string_view takeWord(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kBlank));
    line.remove_prefix(word.size());
    return word;
}

AptSource AptSource::parse(std::string_view line) {
    AptSource source;
    if (line.size() > kMaxSource) fail("the line of an archive is too long");
    const std::string said = "\"" + std::string(line) + "\": ";
    std::string_view word = takeWord(line);
    if (word == "deb") word = takeWord(line);
    if (word.starts_with('[')) {
        line = std::string_view(word.data(), static_cast<std::size_t>(line.end() - word.begin()));
        const std::size_t end = line.find(']');
        if (end == std::string_view::npos) fail(said + "the bracket is not closed");
        readOptions(line.substr(1, end - 1), source);
        line.remove_prefix(end + 1);
        word = takeWord(line);
    }
    if (source.trusted && !source.keyring.empty()) {
        fail(said + "an archive is signed or trusted, not both",
             "leave out trusted=yes, or signed-by");
    }
    source.url = word;
    const bool web = word.starts_with("https://") || word.starts_with("http://");
    if (!web || !hostAndPort(source.url) || word.find_first_of("?#") != std::string_view::npos) {
        fail(said + "\"" + source.url + "\" is no URL of an archive");
    }
    if (!source.url.ends_with('/')) source.url += '/';
    source.suite = takeWord(line);
    if (source.suite.empty()) fail(said + "the suite is missing");
    if (source.suite.find('/') != std::string::npos || !isAptPath(source.suite)) {
        fail(said + "\"" + source.suite + "\" is no suite that can be mirrored",
             "a suite is one word without slashes, as bookworm-updates; an archive without suites "
             "cannot be mirrored");
    }
    while (true) {
        word = takeWord(line);
        if (word.empty()) break;
        if (word.find('/') != std::string_view::npos || !isAptPath(word)) {
            fail(said + "\"" + std::string(word) + "\" is not a component");
        }
        source.components.emplace_back(word);
    }
    if (source.components.empty()) fail(said + "its components are missing");
    if (!source.trusted && source.keyring.empty()) {
        source.keyring = kUsualKeyring;
        // If an image lacks that key, TLS is trusted instead; without TLS, apt refuses the archive.
        source.keyring_optional = source.url.starts_with("https://");
    }
    return source;
}

std::vector<AptSource> parseAptSources(const std::vector<std::string>& lines) {
    if (lines.size() > kMostSources) {
        fail("there are more than " + std::to_string(kMostSources) + " archives", "leave some out");
    }
    std::vector<AptSource> out;
    for (const std::string& line : lines) {
        AptSource source = AptSource::parse(line);
        for (const AptSource& other : out) {
            if (other.suite != source.suite) continue;
            fail("the suite " + source.suite + " is given twice",
                 "name all its components in one line; sandboxes know an archive by its suite");
        }
        out.push_back(std::move(source));
    }
    return out;
}

}  // namespace hearth::broker
