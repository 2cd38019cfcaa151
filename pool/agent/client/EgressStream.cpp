#include "pool/agent/client/EgressStream.h"

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "pool/agent/connection/AgentMessages.h"

namespace hearth::agent {
namespace {

bool isConnection(const Fd& fd) {
    int type = 0;
    socklen_t size = sizeof(type);
    return fd && ::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_STREAM;
}

}  // namespace

bool EgressStream::frame(AgentConnection& from, const FrameHeader& header,
                         std::string_view payload) {
    if (header.type == FrameType::Error) {
        over_ = true;
        if (const auto sink = sink_.lock()) sink->refused(decodeError(payload).what());
        return true;
    }
    if (header.type != FrameType::Note) throw ProtocolError("the broker's stream only notes");
    const Json note = parseObject(payload);
    if (!note.contains("connection")) return false;  // the agent listens now
    if (room_.load() == 0) throw ProtocolError("a connection without credit");
    --room_;
    const auto sink = sink_.lock();
    if (note["connection"].is_number_integer()) {
        if (sink) sink->announced(note["connection"].get<std::int64_t>());
        return false;
    }
    Fd connection = from.takePassed();
    if (!isConnection(connection)) throw ProtocolError("the passed descriptor is not a connection");
    if (sink) sink->connected(std::move(connection));
    return false;
}

}  // namespace hearth::agent
