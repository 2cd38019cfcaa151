#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "pool/agent/protocol/BindLock.h"
#include "pool/agent/protocol/Deadlines.h"
#include "pool/agent/protocol/Frame.h"
#include "tests/fake/runtime/FakeExecution.h"
#include "tests/fake/runtime/FakeFiles.h"
#include "tests/fake/runtime/FakeGroup.h"
#include "tests/fake/runtime/FakeLoop.h"

namespace hearth::pool {

/// The state and actions of the program inside a fake sandbox, without its sockets. All calls are
/// made under the mutex of the FakeLoop.
class FakeAgent {
public:
    /// `plain`: the image has no python.
    FakeAgent(const Clock& clock, std::string sandbox, std::uint64_t capacity, bool plain,
              std::shared_ptr<const FakeGroup> group);

    /// False if the frame breaks the protocol.
    bool frame(FakePeer& peer, const agent::FrameHeader& header, std::string_view payload);
    /// Sends due data on the streams of `peer`, as credit allows.
    void pump(FakePeer& peer);
    void closed(FakePeer& peer);
    /// Lets executions continue.
    void work();

    bool alive() const { return alive_; }
    void die() { alive_ = false; }
    bool hangs() const { return hangs_; }
    void hang() { hangs_ = true; }
    void resume() { hangs_ = false; }
    std::size_t running() const;
    bool floods() const;
    std::uint64_t diskUsed() const { return files_.used(); }

private:
    void request(FakePeer& peer, std::uint32_t stream, const Json& json);
    Json simple(FakePeer& peer, const std::string& op, const Json& json);
    Json usage() const;
    Json hello(FakePeer& peer, const Json& json);
    Json bind(const Json& json);
    Json deadlines(const Json& json);
    void execute(FakePeer& peer, std::uint32_t stream, const Json& json);
    void attach(FakePeer& peer, std::uint32_t stream, FakeExecution& execution,
                const FakeStream& from, bool repeated);
    /// Runs an operation on contexts; nullopt if `op` is another kind.
    std::optional<Json> contextual(const std::string& op, const Json& json);
    Json prewarm(const Json& json) const;
    std::shared_ptr<FakeContext>& context(const std::string& id);
    /// Returns the context that an `exec` names; null without one.
    std::shared_ptr<FakeContext> contextOf(const Json& json);
    FakeExecution* runningIn(const FakeContext& context);
    /// Applies the consequences of an execution's end.
    void settle(const FakeExecution& known);
    void makeRoom();
    void openFile(FakePeer& peer, std::uint32_t stream, const std::string& op, const Json& json);
    void input(FakePeer& peer, std::uint32_t stream, FakeStream& open, std::string_view bytes);
    void endOfInput(FakePeer& peer, std::uint32_t stream, FakeStream& open);
    bool pumpResults(FakePeer& peer, std::uint32_t stream, FakeStream& open,
                     const FakeExecution& known, std::uint64_t end);
    bool pumpExecution(FakePeer& peer, std::uint32_t stream, FakeStream& open);
    bool pumpFile(FakePeer& peer, std::uint32_t stream, FakeStream& open);
    FakeExecution& execution(const std::string& id);
    void admit(const Json& json);
    std::int64_t now() const { return clock_.now().time_since_epoch().count(); }

    const Clock& clock_;
    const std::string sandbox_;
    const std::set<std::string> languages_;
    const std::shared_ptr<const FakeGroup> group_;
    bool alive_ = true;
    bool hangs_ = false;
    agent::BindLock lock_;
    agent::Deadlines deadlines_;
    FakeFiles files_;
    FakePeer* control_ = nullptr;
    std::size_t data_peers_ = 0;
    std::vector<std::unique_ptr<FakeExecution>> executions_;  ///< oldest first
    std::vector<std::shared_ptr<FakeContext>> contexts_;
};

}  // namespace hearth::pool
