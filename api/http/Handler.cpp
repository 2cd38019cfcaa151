#include "api/http/Handler.h"

#include "api/http/CollectedResponse.h"

namespace hearth::api {

HeaderFields::HeaderFields(std::initializer_list<std::pair<std::string, std::string>> fields) {
    for (const auto& [name, value] : fields) add(name, value);
}

std::optional<std::string> Request::header(const std::string& name) const {
    const ConstIterator found = find(name);
    return found == end() ? std::nullopt : std::optional<std::string>(found->second);
}

void Handler::handleRequest(Poco::Net::HTTPServerRequest& request,
                            Poco::Net::HTTPServerResponse& response) {
    dynamic_cast<CollectedResponse&>(response).give(handle(dynamic_cast<Request&>(request)));
}

}  // namespace hearth::api
