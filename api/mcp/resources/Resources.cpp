#include "api/mcp/resources/Resources.h"

#include <algorithm>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Json.h"

namespace hearth::mcp {

Json Resources::list(const CallContext& context) const {
    Json resources = Json::array();
    for (const auto& source : sources_) source->list(context, resources);
    return {{"resources", std::move(resources)}};
}

Json Resources::templates() const {
    Json templates = Json::array();
    for (const auto& source : sources_) source->templates(templates);
    return {{"resourceTemplates", std::move(templates)}};
}

Json Resources::read(const CallContext& context, const std::string& uri) const {
    std::string why;
    try {
        for (const auto& source : sources_) {
            if (std::optional<Json> contents = source->read(context, uri)) {
                return {{"contents", std::move(*contents)}};
            }
        }
    } catch (const Error& error) {
        if (error.code() != ErrorCode::NotFound && error.code() != ErrorCode::Gone &&
            error.code() != ErrorCode::InvalidArgument && error.code() != ErrorCode::Forbidden) {
            throw;
        }
        why = std::string(": ") + error.what();
    }
    throw notFound(context, uri, why);
}

RpcFailure Resources::notFound(const CallContext& context, const std::string& uri,
                               const std::string& why) {
    return RpcFailure({context.modern ? rpc::kInvalidParams : rpc::kResourceNotFound,
                       "Resource not found" + why,
                       {{"uri", uri}}});
}

bool Resources::watchable(const CallContext& context, const std::string& uri) const {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const auto& source) { return source->watchable(context, uri); });
}

std::vector<std::string> Resources::complete(const CallContext& context,
                                             const std::string& uri_template,
                                             const Typed& typed) const {
    for (const auto& source : sources_) {
        if (auto values = source->complete(context, uri_template, typed)) return *values;
    }
    throw RpcFailure({rpc::kInvalidParams, "Unknown resource template: " + uri_template, {}});
}

Json textContents(const std::string& uri, const std::string& mime, const std::string& text) {
    return {{"uri", uri}, {"mimeType", mime}, {"text", toUtf8(text)}};
}

Json blobContents(const std::string& uri, const std::string& mime, std::string_view bytes) {
    return {{"uri", uri}, {"mimeType", mime}, {"blob", base64Encode(bytes)}};
}

}  // namespace hearth::mcp
