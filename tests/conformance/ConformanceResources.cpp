#include "base/Ids.h"
#include "tests/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

constexpr const char* kText = "test://static-text";
constexpr const char* kBinary = "test://static-binary";
constexpr const char* kWatched = "test://watched-resource";
constexpr const char* kTemplate = "test://template/{id}/data";

class TestResources final : public ResourceSource {
public:
    void list(const CallContext&, Json& resources) const override {
        add(resources, kText, "Static Text Resource", "text/plain");
        add(resources, kBinary, "Static Binary Resource", "image/png");
        add(resources, kWatched, "Watched Resource", "text/plain");
    }

    void templates(Json& templates) const override {
        templates.push_back({{"uriTemplate", kTemplate},
                             {"name", "Template Resource"},
                             {"description", "Data by id."},
                             {"mimeType", "application/json"}});
    }

    std::optional<Json> read(const CallContext&, const std::string& uri) const override {
        if (uri == kText) {
            return Json::array({textContents(uri, "text/plain",
                                             "This is the content of the static text resource.")});
        }
        if (uri == kBinary) {
            std::string bytes;
            base64Decode(kPng, bytes);
            return Json::array({blobContents(uri, "image/png", bytes)});
        }
        if (uri == kWatched) {
            return Json::array({textContents(uri, "text/plain", "Watched resource content.")});
        }
        const std::string pattern = kTemplate;
        const std::string before = pattern.substr(0, pattern.find('{'));
        const std::string behind = pattern.substr(pattern.find('}') + 1);
        if (!uri.starts_with(before) || !uri.ends_with(behind) ||
            uri.size() <= before.size() + behind.size()) {
            return std::nullopt;
        }
        const std::string id =
            uri.substr(before.size(), uri.size() - before.size() - behind.size());
        const Json data = {{"id", id}, {"templateTest", true}, {"data", "Data for ID: " + id}};
        return Json::array({textContents(uri, "application/json", dumpJson(data))});
    }

    bool watchable(const CallContext&, const std::string& uri) const override {
        return uri == kWatched;
    }

    std::optional<std::vector<std::string>> complete(const CallContext&,
                                                     const std::string& uri_template,
                                                     const Typed&) const override {
        if (uri_template != kTemplate) return std::nullopt;
        return std::vector<std::string>{"123"};
    }

private:
    static void add(Json& resources, const char* uri, const char* name, const char* mime) {
        resources.push_back({{"uri", uri},
                             {"name", name},
                             {"description", std::string(name) + " of the conformance suite."},
                             {"mimeType", mime}});
    }
};

}  // namespace

std::shared_ptr<const ResourceSource> resources() {
    return std::make_shared<TestResources>();
}

}  // namespace hearth::mcp::conformance
