#include "controller/egress/mirror/npm/NpmIndex.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/Digest.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kMaxNpmName = 214;

bool isPart(std::string_view part) {
    return !part.empty() && part.front() != '.' && part.front() != '_' &&
           std::all_of(part.begin(), part.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      std::string_view("._-~!'()*").find(c) != std::string_view::npos;
           });
}

/// The sha512 of a subresource integrity text ("sha1-… sha512-<base64>").
ContentHash sha512Of(std::string_view integrity) {
    constexpr std::string_view kPrefix = "sha512-";
    while (!integrity.empty()) {
        const std::size_t blank = std::min(integrity.find(' '), integrity.size());
        std::string_view word = integrity.substr(0, blank);
        integrity.remove_prefix(std::min(blank + 1, integrity.size()));
        if (!word.starts_with(kPrefix)) continue;
        word.remove_prefix(kPrefix.size());
        std::string raw;
        if (!base64Decode(word.substr(0, word.find('?')), raw)) continue;
        return {"sha512", toHex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size())};
    }
    return {};
}

}  // namespace

std::optional<std::string> npmName(std::string_view path) {
    if (path.size() > kMaxNpmName) return std::nullopt;
    if (path.starts_with('@')) {
        const std::size_t slash = path.find('/');
        if (slash == std::string_view::npos || !isPart(path.substr(1, slash - 1)) ||
            !isPart(path.substr(slash + 1))) {
            return std::nullopt;
        }
        return std::string(path);
    }
    return isPart(path) ? std::optional(std::string(path)) : std::nullopt;
}

std::size_t NpmPackage::bytes() const {
    constexpr std::size_t kOfTarball = 400;
    return document->size() + tarballs.size() * kOfTarball;
}

NpmPackage parseNpm(const std::string& name, const std::string& base, const std::string& body,
                    const std::string& mirror) {
    Json document = parsePage(body);
    if (!document.is_object() || !document.contains("versions") ||
        !document["versions"].is_object()) {
        throw Refused(kBadGateway, "bad_index", "the registry sends no package document");
    }
    NpmPackage out;
    out.name = name;
    for (auto& [version, entry] : document["versions"].items()) {
        if (!entry.is_object() || !entry.contains("dist") || !entry["dist"].is_object()) continue;
        Json& dist = entry["dist"];
        if (!dist.contains("tarball") || !dist["tarball"].is_string()) continue;
        const std::optional<std::string> url = resolveUrl(base, dist["tarball"].get<std::string>());
        if (!url) {
            dist.erase("tarball");
            continue;
        }
        const std::string path = url->substr(0, url->find('?'));
        const std::string file = path.substr(path.rfind('/') + 1);
        if (!isPart(file)) {
            dist.erase("tarball");  // its name cannot be part of a mirror address
            continue;
        }
        NpmTarball tarball{*url, {}};
        if (dist.contains("integrity") && dist["integrity"].is_string()) {
            tarball.hash = sha512Of(dist["integrity"].get<std::string>());
        }
        out.tarballs[file] = std::move(tarball);
        dist["tarball"] = mirror + "/" + name + "/-/" + file;
    }
    out.document = std::make_shared<const std::string>(dumpJson(document));
    return out;
}

}  // namespace hearth::egress
