#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/mcp/protocol/CallContext.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// What a client has typed of a variable of a URI template, and the variables that it knows.
struct Typed {
    std::string variable;
    std::string value{};
    std::map<std::string, std::string> known{};
};

/// One kind of resources. Thread-safe.
class ResourceSource {
public:
    virtual ~ResourceSource() = default;
    /// Appends what it has of the caller to `resources`: at most some hundred.
    virtual void list(const CallContext& context, Json& resources) const = 0;
    /// Appends its URI templates.
    virtual void templates(Json& templates) const = 0;
    /// The contents of a URI, an array of one or more; nullopt if the URI is not one of these
    /// resources. Throws Error if it is and cannot be read.
    virtual std::optional<Json> read(const CallContext& context, const std::string& uri) const = 0;
    /// Whether the caller's streams can hear of changes of a URI (ChangeNotifier): it is one of
    /// these resources and there is such a thing now.
    virtual bool watchable(const CallContext& context, const std::string& uri) const = 0;
    /// Proposals for a variable of one of its templates, which need not begin with what was typed;
    /// nullopt for other templates.
    virtual std::optional<std::vector<std::string>> complete(const CallContext& context,
                                                             const std::string& uri_template,
                                                             const Typed& typed) const = 0;
};

/// One endpoint's resources. Thread-safe once made.
class Resources {
public:
    explicit Resources(std::vector<std::shared_ptr<const ResourceSource>> sources)
        : sources_(std::move(sources)) {}

    /// The results of resources/list and resources/templates/list.
    Json list(const CallContext& context) const;
    Json templates() const;
    /// The result of resources/read. Throws RpcFailure(not found) in the words of the era.
    Json read(const CallContext& context, const std::string& uri) const;
    /// As of its sources; false for a URI of none.
    bool watchable(const CallContext& context, const std::string& uri) const;
    std::vector<std::string> complete(const CallContext& context, const std::string& uri_template,
                                      const Typed& typed) const;

    /// The refusal of a URI that is no resource, in the words of the era.
    static RpcFailure notFound(const CallContext& context, const std::string& uri,
                               const std::string& why = {});

private:
    std::vector<std::shared_ptr<const ResourceSource>> sources_;
};

/// `pool://{name}`, `workspace://{id}`, `workspace://{id}/logs`, `workspace://{id}/files/{path}`.
std::vector<std::shared_ptr<const ResourceSource>> nativeResources(
    const controller::Services& services);

/// One element of a read's contents.
Json textContents(const std::string& uri, const std::string& mime, const std::string& text);
Json blobContents(const std::string& uri, const std::string& mime, std::string_view bytes);

}  // namespace hearth::mcp
