#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::agent {

/// The client's end of one `broker`: checks that the agent hands over only connections, and no more
/// than were granted, and gives them to the sink. Does not keep the sink. Thread-safe.
class EgressStream final : public Stream {
public:
    explicit EgressStream(const std::shared_ptr<EgressSink>& sink) : sink_(sink) {}

    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override { over_ = true; }
    bool listens() const override { return true; }

    void granted(std::uint32_t connections) { room_ += connections; }
    bool over() const { return over_; }

private:
    const std::weak_ptr<EgressSink> sink_;
    std::atomic<std::uint32_t> room_{0};
    std::atomic<bool> over_{false};
};

}  // namespace hearth::agent
