#include "pool/runtime/kubernetes/client/KubeResource.h"

#include "base/http/Url.h"

namespace hearth::pool::kubernetes {

std::string KubeResource::path(std::string_view name, std::string_view subresource) const {
    std::string out = group.empty() ? "/api/" : "/apis/" + percentEncode(group) + "/";
    out += percentEncode(version);
    if (!ns.empty()) out += "/namespaces/" + percentEncode(ns);
    out += "/" + percentEncode(plural);
    if (!name.empty()) out += "/" + percentEncode(name);
    if (!subresource.empty()) out += "/" + percentEncode(subresource);
    return out;
}

std::optional<OwnerName> parseOwner(std::string_view text, const std::string& ns) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() ||
        text.find('/', slash + 1) != std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view kind = text.substr(0, slash);
    const std::size_t dot = kind.find('.');
    OwnerName owner;
    owner.name = text.substr(slash + 1);
    owner.resource.plural = kind.substr(0, dot);
    if (dot != std::string_view::npos) owner.resource.group = kind.substr(dot + 1);
    owner.resource.ns = ns;
    return owner;
}

std::string KubeResource::text() const {
    return plural + (group.empty() ? "" : "." + group) + (ns.empty() ? "" : " in " + ns);
}

KubeQuery& KubeQuery::add(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? "?" : "&";
    text_ += percentEncode(key) + "=" + percentEncode(value);
    return *this;
}

}  // namespace hearth::pool::kubernetes
