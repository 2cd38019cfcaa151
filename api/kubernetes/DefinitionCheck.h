#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "metrics/Log.h"

/// Compares the cluster's definitions with those of this program: an older one silently drops
/// the fields that it does not know.
namespace hearth::kubernetes {

/// Returns the API server's document at a path; nullopt if the server does not answer or refuses.
using ReadPath = std::function<std::optional<Json>(const std::string& path)>;

/// How to fix outdated definitions, for people.
inline constexpr const char* kDefinitionFix =
    "hearth crds | kubectl apply -f -, or helm upgrade; then apply the objects again, because "
    "dropped fields are lost";

/// The faults of the definitions of the cluster.
struct DefinitionVerdict {
    bool known = false;        ///< false: the cluster gave no answer
    std::string trouble = {};  ///< for people; empty: they are this program's, or newer
};

/// Checks the definitions of SandboxPool and Workspace. Any account may read their marks, which are
/// in the list of resources. The definitions themselves are read if that is allowed, so that the
/// fields can be named: with `inside` always, else only if a mark differs from this program's.
DefinitionVerdict checkDefinitions(const ReadPath& read, bool inside);

/// Returns the fields and enum values that `ours` has and the cluster's does not: "spec.warm.min",
/// "spec.template.storage=Disk". Both are whole definitions.
std::vector<std::string> fieldsLackingIn(const Json& clusters, const Json& ours);

/// Checks the definitions repeatedly, for a server that follows their objects. Used by one
/// thread.
class DefinitionWatch {
public:
    static constexpr std::chrono::seconds kLook{15};

    /// References must outlive it.
    DefinitionWatch(const Clock& clock, metrics::Log& log) : clock_(clock), log_(log) {}

    /// Checks the definitions if the last check is older than kLook; blocks for the calls. If the
    /// cluster does not answer, its last answer stays valid.
    void look(const ReadPath& read);
    /// DefinitionVerdict::trouble of the last answer.
    const std::string& trouble() const { return trouble_; }

private:
    const Clock& clock_;
    metrics::Log& log_;
    std::optional<TimePoint> looked_;
    std::string trouble_;
};

}  // namespace hearth::kubernetes
