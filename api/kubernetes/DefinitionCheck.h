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

/// Compares the definitions that a cluster has with those of this program: an older one drops the
/// fields that it does not know, and nobody is told.
namespace hearth::kubernetes {

/// Gives what the API server has at a path; nullopt where it does not answer or refuses.
using ReadPath = std::function<std::optional<Json>(const std::string& path)>;

/// How to mend it, for people.
inline constexpr const char* kDefinitionFix =
    "hearth crds | kubectl apply -f -, or helm upgrade; then apply the objects again, for what was "
    "dropped is lost";

/// The faults of the definitions of the cluster.
struct DefinitionVerdict {
    bool known = false;        ///< false: the cluster does not say
    std::string trouble = {};  ///< for people; empty: they are ours, or of a newer version
};

/// Checks those of SandboxPool and Workspace. Any account may read the mark that each has: the list
/// of resources has it. The definitions themselves are read where that is allowed, which then names
/// the fields: with `inside` always, else only where a mark is not ours.
DefinitionVerdict checkDefinitions(const ReadPath& read, bool inside);

/// The fields, and words of fields, that `ours` has and the cluster's does not: "spec.warm.min",
/// "spec.template.storage=Disk". Both are whole definitions.
std::vector<std::string> fieldsLackingIn(const Json& clusters, const Json& ours);

/// Looks at the definitions again and again, for a server that follows their objects. Of one
/// thread.
class DefinitionWatch {
public:
    static constexpr std::chrono::seconds kLook{15};

    /// References outlive it.
    DefinitionWatch(const Clock& clock, metrics::Log& log) : clock_(clock), log_(log) {}

    /// Looks, unless it has just done so; blocks for the calls. What a cluster that does not answer
    /// has said before stays true.
    void look(const ReadPath& read);
    /// As DefinitionVerdict::trouble, of the last answer.
    const std::string& trouble() const { return trouble_; }

private:
    const Clock& clock_;
    metrics::Log& log_;
    std::optional<TimePoint> looked_;
    std::string trouble_;
};

}  // namespace hearth::kubernetes
