#pragma once

#include <string_view>

#include "pool/agent/client/AgentClient.h"
#include "pool/agent/connection/AgentConnection.h"

namespace hearth::agent {

/// The client's end of one `prewarm`: hears its answer while no thread waits for it.
class PrewarmStream final : public Stream {
public:
    PrewarmStream(PrewarmRequest request, AgentClient::Prewarmed done)
        : request_(std::move(request)), done_(std::move(done)) {}

    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override;
    bool listens() const override { return true; }

private:
    const PrewarmRequest request_;
    const AgentClient::Prewarmed done_;
};

}  // namespace hearth::agent
