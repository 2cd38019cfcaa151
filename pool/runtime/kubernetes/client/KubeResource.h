#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::pool::kubernetes {

/// A kind of objects of the API server, of one namespace or of all.
struct KubeResource {
    std::string group = {};  ///< empty: the core group
    std::string version = "v1";
    std::string plural = {};  ///< "pods"
    std::string ns = {};      ///< empty: all namespaces, or the resource has none

    /// "/api/v1/namespaces/default/pods"; with parts below it: "NAME", "NAME" and "status".
    std::string path(std::string_view name = {}, std::string_view subresource = {}) const;
    /// For people: "pods in default", "nodes", "leases.coordination.k8s.io in hearth".
    std::string text() const;
};

/// An object of the namespace with whose end others go: "configmaps/NAME", "deployments.apps/NAME".
struct OwnerName {
    KubeResource resource;
    std::string name;
};
/// nullopt for a text of another shape. `ns`: where it is.
std::optional<OwnerName> parseOwner(std::string_view text, const std::string& ns);

/// The query of a target; pairs with an empty value are left out. Everything but unreserved
/// characters is encoded: a ';' as it is makes a Go server drop the whole parameter.
class KubeQuery {
public:
    KubeQuery& add(std::string_view key, std::string_view value);
    /// "" or "?a=1&b=2".
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

}  // namespace hearth::pool::kubernetes
