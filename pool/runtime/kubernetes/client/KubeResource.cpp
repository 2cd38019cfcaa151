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
