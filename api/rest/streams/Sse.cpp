#include "api/rest/streams/Sse.h"

#include <charconv>

#include "api/http/RequestFacts.h"
#include "base/Error.h"

namespace hearth::rest {

std::string sseHead(std::string_view name, std::uint64_t id) {
    std::string out = "id: " + std::to_string(id) + "\nevent: ";
    out.append(name).append("\ndata: ");
    return out;
}

std::string sseEvent(std::string_view name, std::uint64_t id, const Json& data) {
    return sseHead(name, id).append(dumpJson(data)).append("\n\n");
}

bool wantsEventStream(const api::Request& request) {
    for (const Poco::Net::MediaType& type : api::acceptedTypes(request)) {
        if (type.matches("text", "event-stream")) return true;
    }
    return false;
}

std::optional<std::uint64_t> lastEventId(const api::Request& request) {
    std::optional<std::string> text = request.header("Last-Event-ID");
    if (!text || text->empty()) text = request.query("since");
    if (!text) return std::nullopt;
    std::uint64_t id = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, id);
    if (text->empty() || error != std::errc{} || stop != end) {
        throw Error(ErrorCode::InvalidArgument, "the Last-Event-ID is not a number")
            .hint("Send the id of the last event that you have received");
    }
    return id;
}

api::Response sseResponse(api::StreamStarter starter) {
    api::Response response;
    response.headers = {{"Content-Type", "text/event-stream"},
                        {"Cache-Control", "no-store"},
                        {"X-Accel-Buffering", "no"}};
    response.body = std::move(starter);
    response.keepalive = ": keepalive\n\n";
    return response;
}

std::size_t incompleteTail(std::string_view bytes) {
    for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
        const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
        if ((byte & 0xC0U) == 0x80U) continue;  // inside a sequence: look for its beginning
        std::size_t length = 1;
        if (byte >= 0xC2U && byte <= 0xDFU) length = 2;
        if (byte >= 0xE0U && byte <= 0xEFU) length = 3;
        if (byte >= 0xF0U && byte <= 0xF4U) length = 4;
        return length > back ? back : 0;
    }
    return 0;
}

}  // namespace hearth::rest
