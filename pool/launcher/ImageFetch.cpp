#include "pool/launcher/ImageFetch.h"

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "pool/image/ImageImport.h"
#include "pool/image/Reference.h"
#include "pool/launcher/FetchNetwork.h"

namespace hearth::pool::launcher {

Json fetchImage(const std::string& data_dir, const FetchImageRequest& fetch, int gateway) {
    const auto reference = image::parseReference(fetch.reference);
    const std::string proxy =
        enterFetchNetwork(reference ? image::registryOf(reference->repository) : "", gateway);
    image::ImportRequest request;
    request.source = "docker://" + fetch.reference;
    request.on_demand = true;
    request.insecure = fetch.insecure;
    request.limit = std::chrono::seconds(fetch.limit_s);
    for (const char* name : {"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"}) {
        request.environment.push_back(std::string(name) + "=" + proxy);
    }
    if (const char* authorities = std::getenv("SSL_CERT_FILE")) {
        request.environment.push_back(std::string("SSL_CERT_FILE=") + authorities);
    }
    const image::ImportResult result =
        image::importImage(data_dir, request, [](const std::string&, std::uint64_t) {});
    const auto millis = [](std::chrono::nanoseconds span) {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
    };
    return encodeFetched({result.image, millis(result.copied), millis(result.unpacked)});
}

}  // namespace hearth::pool::launcher
