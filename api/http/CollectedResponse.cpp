#include "api/http/CollectedResponse.h"

#include <Poco/Exception.h>
#include <Poco/FileStream.h>
#include <Poco/StreamCopier.h>

namespace hearth::api {

Response CollectedResponse::take() {
    if (given_) return std::move(*given_);
    Response response;
    response.status = getStatus();
    response.headers.swap(*this);
    for (const std::string& framing :
         {CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, DATE, std::string("Server")}) {
        response.headers.erase(framing);
    }
    if (written_) response.body = std::move(*written_).str();
    return response;
}

std::ostream& CollectedResponse::send() {
    if (sent()) throw Poco::IllegalStateException("the response was sent");
    return written_.emplace();
}

void CollectedResponse::sendFile(const std::string& path, const std::string& media_type) {
    Poco::FileInputStream file(path);
    setContentType(media_type);
    Poco::StreamCopier::copyStream(file, send());
}

void CollectedResponse::sendBuffer(const void* bytes, std::size_t length) {
    send().write(static_cast<const char*>(bytes), static_cast<std::streamsize>(length));
}

void CollectedResponse::redirect(const std::string& uri, HTTPStatus status) {
    setStatusAndReason(status);
    set("Location", uri);
    send();
}

void CollectedResponse::requireAuthentication(const std::string& realm) {
    setStatusAndReason(HTTP_UNAUTHORIZED);
    set("WWW-Authenticate", "Basic realm=\"" + realm + "\"");
    send();
}

}  // namespace hearth::api
