#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/Fd.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::pool {

class FakeAgent;
class FakeLoop;

/// One stream of one connection to a fake agent.
struct FakeStream {
    enum class Kind { Execution, Read, Write } kind = Kind::Execution;
    std::size_t credit = agent::kInitialCredit;  ///< how many bytes may still be sent
    std::string name;                            ///< the execution's id, the file's path
    std::uint64_t position = 0;                  ///< of the next byte to send
    std::uint64_t results = 0;                   ///< the same in an execution's results
    std::uint64_t begin = 0;                     ///< of a file being read
    std::uint64_t end = 0;                       ///< of a file being read
    std::shared_ptr<const std::string> content;  ///< of a file being read
    std::string written;                         ///< of a file being written
    std::optional<unsigned> mode;
    bool owns_input = false;
};

/// One connection to a fake agent. Belongs to the loop; used under its mutex.
struct FakePeer {
    enum class Kind { Unknown, Control, Data };

    Fd fd;
    std::uint64_t id = 0;
    std::shared_ptr<FakeAgent> agent;
    Kind kind = Kind::Unknown;
    std::string in;
    std::string out;
    bool writing = false;  ///< waits for room in the socket
    bool ended = false;    ///< to be closed once `out` is gone
    std::map<std::uint32_t, FakeStream> streams;

    void send(agent::FrameType type, std::uint32_t stream, std::string_view payload,
              agent::Channel channel = agent::Channel::Bytes);
    void sendJson(agent::FrameType type, std::uint32_t stream, const Json& json);
};

/// The one thread that runs all fake agents of a FakeRuntime. Thread-safe.
class FakeLoop {
public:
    FakeLoop();
    ~FakeLoop();
    FakeLoop(const FakeLoop&) = delete;
    FakeLoop& operator=(const FakeLoop&) = delete;

    /// Makes a connection to the agent. Throws std::system_error (ECONNREFUSED) if it is dead.
    Fd connect(const std::shared_ptr<FakeAgent>& agent);
    /// Ends the agent and its connections.
    void kill(FakeAgent& agent);
    /// Makes the agent stop reading; resume() ends that.
    void hang(FakeAgent& agent);
    void resume(FakeAgent& agent);
    /// Ends only its connections.
    void sever(FakeAgent& agent);
    /// Runs `f` while no agent works. Other state that `f` uses is locked by the caller, which the
    /// checker cannot see here.
    template <typename F>
    auto quiet(F f) const HEARTH_NO_THREAD_SAFETY_ANALYSIS {
        const MutexLock lock(mutex_);
        return f();
    }

private:
    void run(const std::stop_token& stop);
    void serve(std::uint64_t id, std::uint32_t events) HEARTH_REQUIRES(mutex_);
    bool receive(FakePeer& peer) HEARTH_REQUIRES(mutex_);
    void flush(FakePeer& peer) HEARTH_REQUIRES(mutex_);
    void work() HEARTH_REQUIRES(mutex_);
    void closeEnded() HEARTH_REQUIRES(mutex_);
    std::vector<FakePeer*> peersOf(const FakeAgent& agent) const HEARTH_REQUIRES(mutex_);
    void drop(const FakePeer& peer) HEARTH_REQUIRES(mutex_);
    void watch(FakePeer& peer, std::uint32_t events, int operation) HEARTH_REQUIRES(mutex_);

    Fd epoll_;
    Fd wake_;
    mutable Mutex mutex_;
    // Also guards everything reachable from these:
    std::uint64_t next_id_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::map<std::uint64_t, std::unique_ptr<FakePeer>> peers_ HEARTH_GUARDED_BY(mutex_);
    std::map<const FakeAgent*, std::set<std::uint64_t>> ids_ HEARTH_GUARDED_BY(mutex_);
    /// Agents with running executions.
    std::set<std::shared_ptr<FakeAgent>> busy_ HEARTH_GUARDED_BY(mutex_);
    /// Agents with connections that may have ended.
    std::set<std::shared_ptr<FakeAgent>> some_ended_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::pool
