#include "pool/agent/client/PrewarmStream.h"

#include "pool/agent/connection/AgentMessages.h"

namespace hearth::agent {

bool PrewarmStream::frame(AgentConnection&, const FrameHeader& header, std::string_view payload) {
    if (header.type == FrameType::Reply) {
        done_(decodePrewarm(parseObject(payload), request_), std::nullopt);
        return true;
    }
    if (header.type != FrameType::Error) throw ProtocolError("a prewarm is only answered");
    done_(std::nullopt, decodeError(payload));
    return true;
}

void PrewarmStream::lost() {
    done_(std::nullopt, std::nullopt);
}

}  // namespace hearth::agent
