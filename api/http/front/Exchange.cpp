#include "api/http/front/Exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "base/Units.h"

namespace hearth::api {
namespace {

constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kReadStep = 64U << 10U;

}  // namespace

std::string IdSource::next(std::string_view prefix) {
    if (left_ < kIdBytes) {
        randomBytes(bytes_.data(), bytes_.size());
        left_ = bytes_.size();
    }
    left_ -= kIdBytes;
    return std::string(prefix) + toHex(bytes_.data() + left_, kIdBytes);
}

BodyStream::BodyStream(BodyReader& body)
    : Poco::BufferedStreamBuf(kReadStep, std::ios::in), std::istream(this), body_(body) {
    exceptions(std::ios::badbit);  // a body that is cut off must not look complete
}

int BodyStream::readFromDevice(char* bytes, std::streamsize size) {
    return static_cast<int>(body_.read(bytes, static_cast<std::size_t>(size)));
}

Exchange::Exchange(Connection& connection, FrontContext& core, IdSource& ids)
    : connection_(connection),
      core_(core),
      body_(connection, core.options, core.clock),
      forwarded_(core.proxies.client(connection.peer, connection.head)),
      id_(ids.next("req_")) {
    // Poco's own parser reads nothing: it would decode encoded words in checked values.
    setMethod(connection.head.method);
    setURI(connection.head.target);
    setVersion(connection.head.http11 ? HTTP_1_1 : HTTP_1_0);
    for (const RequestHead::Field& field : connection.head.fields) {
        add(std::string(field.name), std::string(field.value));
    }
    const std::optional<TraceContext> caller =
        parseTraceContext(get("traceparent", ""), get("tracestate", ""));
    if (caller) parent_span_ = caller->span_id;
    trace_ = core.tracer.begin(caller);
}

std::optional<std::string> Exchange::query(std::string_view name) const {
    for (const auto& [key, value] : connection_.head.query) {
        if (key == name) return value;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> Exchange::contentLength() const {
    if (connection_.head.chunked) return std::nullopt;
    return connection_.head.content_length;
}

std::string Exchange::readBody(std::size_t limit) {
    const auto refuse = [limit] {
        throw Error(ErrorCode::PayloadTooLarge,
                    "the request body is larger than " + formatSize(static_cast<double>(limit)));
    };
    limit = std::min(limit, std::string().max_size() - 1);
    std::string body;
    const std::uint64_t declared = contentLength().value_or(0);
    if (declared > limit) refuse();
    while (!body_.finished()) {
        const std::size_t old = body.size();
        const std::size_t step = declared > 0 && !connection_.head.chunked
                                     ? std::min<std::size_t>(declared - old, kReadStep)
                                     : std::min(limit + 1 - old, kReadStep);
        body.resize(old + step);
        const std::size_t got = body_.read(body.data() + old, step);
        body.resize(old + got);
        if (body.size() > limit) refuse();
        if (got == 0) break;
    }
    requireRight();
    return body;
}

std::size_t Exchange::readSome(char* out, std::size_t size) {
    const std::size_t got = body_.read(out, size);
    requireRight();
    return got;
}

void Exchange::requireRight() const {
    if (right_.holds(core_.clock)) return;
    throw Error(ErrorCode::Unauthenticated, "the token was revoked or has expired meanwhile")
        .hint("Make one with `hearth token create`, or ask an administrator");
}

AccessEntry Exchange::access() const {
    AccessEntry entry = accessEntry(*this);
    entry.route = route_;
    entry.tenant = tenant_;
    entry.token = token_id_;
    entry.trace_id = core_.tracer.recorded(trace_).trace_id;
    entry.bytes_in = connection_.head_size + body_.received();
    return entry;
}

std::istream& Exchange::stream() {
    return stream_ ? *stream_ : stream_.emplace(body_);
}

const Poco::Net::SocketAddress& Exchange::clientAddress() const {
    if (!client_address_) {
        client_address_ = Poco::Net::SocketAddress(forwarded_.value_or(connection_.peer), 0);
    }
    return *client_address_;
}

bool Exchange::clientGone() const {
    pollfd entry{connection_.fd.get(), POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) > 0;
}

}  // namespace hearth::api
