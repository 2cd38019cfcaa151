#include "pool/runtime/kubernetes/client/WatchEvent.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Texts.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::pool::kubernetes {
namespace {

constexpr Texts<WatchEvent::Kind, 5> kTypes{{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}};

bool endsInitial(const Json& bookmark) {
    const Json& metadata = bookmark.at("metadata");
    const auto annotations = metadata.find("annotations");
    return annotations != metadata.end() && annotations->is_object() &&
           textAt(*annotations, "k8s.io/initial-events-end") == "true";
}

}  // namespace

std::optional<WatchEvent> parseWatchEvent(std::string_view line) {
    try {
        Json json = parseJson(line, kubeJsonLimits());
        if (!json.is_object()) return std::nullopt;
        const auto kind = kTypes.find(textAt(json, "type"));
        const auto object = json.find("object");
        if (!kind || object == json.end() || !object->is_object()) return std::nullopt;
        WatchEvent event{.kind = *kind, .object = std::move(*object), .version = {}};
        if (*kind == WatchEvent::Kind::Failure) return event;
        event.version = metadataText(event.object, "resourceVersion");
        if (event.version.empty()) return std::nullopt;
        if (*kind == WatchEvent::Kind::Bookmark) {
            event.ends_initial = endsInitial(event.object);
        } else if (metadataText(event.object, "name").empty()) {
            return std::nullopt;
        }
        return event;
    } catch (const Error&) {  // no JSON
        return std::nullopt;
    }
}

}  // namespace hearth::pool::kubernetes
