#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/mcp/protocol/CallContext.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The text that a client has typed for a variable of a URI template, and the known variables.
struct Typed {
    std::string variable;
    std::string value{};
    std::map<std::string, std::string> known{};
};

/// One kind of resources. Thread-safe.
class ResourceSource {
public:
    virtual ~ResourceSource() = default;
    /// Appends the caller's resources to `resources`: a few hundred at most.
    virtual void list(const CallContext& context, Json& resources) const = 0;
    /// Appends its URI templates.
    virtual void templates(Json& templates) const = 0;
    /// Returns the contents of a URI, an array of one or more; nullopt if the URI is not one of
    /// these resources. Throws Error if it is one and cannot be read.
    virtual std::optional<Json> read(const CallContext& context, const std::string& uri) const = 0;
    /// True if the caller's streams can report changes of a URI (ChangeNotifier): the URI is one
    /// of these resources and it exists now.
    virtual bool watchable(const CallContext& context, const std::string& uri) const = 0;
    /// Returns proposals for a variable of one of its templates, which need not begin with the
    /// typed text; nullopt for other templates.
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
    /// Returns the result of resources/read. Throws RpcFailure(not found) in the form of the era.
    Json read(const CallContext& context, const std::string& uri) const;
    /// As ResourceSource::watchable(); false for a URI of no source.
    bool watchable(const CallContext& context, const std::string& uri) const;
    std::vector<std::string> complete(const CallContext& context, const std::string& uri_template,
                                      const Typed& typed) const;

    /// Returns the refusal of a URI that is not a resource, in the form of the era.
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
