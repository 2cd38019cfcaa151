#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::pool::kubernetes {

/// A kind of API objects, in one namespace or in all.
struct KubeResource {
    std::string group = {};  ///< empty: the core group
    std::string version = "v1";
    std::string plural = {};  ///< "pods"
    std::string ns = {};      ///< empty: all namespaces, or the resource has none

    /// Returns "/api/v1/namespaces/default/pods", then optional parts: "NAME", "NAME" and "status".
    std::string path(std::string_view name = {}, std::string_view subresource = {}) const;
    /// Text for people: "pods in default", "nodes", "leases.coordination.k8s.io in hearth".
    std::string text() const;
};

/// An object that owns others in its namespace: "configmaps/NAME", "deployments.apps/NAME".
struct OwnerName {
    KubeResource resource;
    std::string name;
};
/// Returns nullopt for a text of another form. `ns`: the owner's namespace.
std::optional<OwnerName> parseOwner(std::string_view text, const std::string& ns);

/// The query of a target; pairs with an empty value are omitted. All characters except unreserved
/// ones are encoded: a plain ';' makes a Go server drop the whole parameter.
class KubeQuery {
public:
    KubeQuery& add(std::string_view key, std::string_view value);
    /// "" or "?a=1&b=2".
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

}  // namespace hearth::pool::kubernetes
