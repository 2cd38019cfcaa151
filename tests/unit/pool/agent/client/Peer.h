#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent::test {

inline constexpr std::string_view kHello =
    R"({"protocol":1,"agent":"t","sandbox":"s","languages":{"python":{}},"nowNs":1,"highestEpoch":1,)"
    R"("bound":{"claimId":"c","attempt":1,"epoch":1,"tenant":"t","workspaceId":"w","fingerprint":"f",)"
    R"("labels":{"a":"b"},"note":{"pool":"p"},"boundAtNs":5},"deadlines":{"expiresAtNs":9,)"
    R"("idleTimeoutMs":7,"idleAtNs":8},"lastActivityNs":3,"running":1,"executions":[{"id":"e",)"
    R"("fingerprint":"g","state":"running","startedAtNs":2,"background":false}],)"
    R"("contexts":[{"id":"cx","language":"python","running":true}]})";
inline constexpr std::string_view kStarted =
    R"({"started":{"id":"x","startedAtNs":1,"repeated":false,"interpreter":"zygote"}})";
inline constexpr std::string_view kResult =
    R"({"result":{"id":"x","status":"ok","exitCode":0,"signal":0,"startedAtNs":1,"endedAtNs":2,)"
    R"("cpuMs":1,"maxRssBytes":4096,"outputBytes":3,"droppedBytes":0,"interpreter":"",)"
    R"("resultBytes":0,"droppedResults":0}})";
inline constexpr std::string_view kStat =
    R"({"stat":{"path":"f","type":"file","size":3,"mode":420,"modifiedAtMs":5,"etag":"e"}})";

inline std::string frame(FrameType type, std::uint32_t stream, std::string_view payload,
                         Channel channel = Channel::Bytes) {
    std::array<unsigned char, kHeaderSize> head;
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.stream = stream;
    header.type = type;
    header.channel = channel;
    encodeHeader(header, head.data());
    std::string out(reinterpret_cast<const char*>(head.data()), head.size());
    return out.append(payload);
}

inline std::string output(std::uint32_t stream, std::uint64_t offset, std::string_view bytes) {
    std::string payload(kOffsetSize, '\0');
    putU64(reinterpret_cast<unsigned char*>(payload.data()), offset);
    return frame(FrameType::Data, stream, payload.append(bytes), Channel::Stdout);
}

/// Returns a frame with bytes of channel 3.
inline std::string shown(std::uint32_t stream, std::uint64_t offset, std::string_view bytes) {
    std::string payload(kOffsetSize, '\0');
    putU64(reinterpret_cast<unsigned char*>(payload.data()), offset);
    return frame(FrameType::Data, stream, payload.append(bytes), Channel::Results);
}

/// Returns one result as channel 3 carries it. `length` replaces its real length.
inline std::string entry(std::string_view json, std::optional<std::uint32_t> length = {}) {
    std::string out(4, '\0');
    putU32(reinterpret_cast<unsigned char*>(out.data()),
           length.value_or(static_cast<std::uint32_t>(json.size())));
    return out.append(json);
}

/// An agent that answers the n-th frame it receives with the n-th of the prepared byte strings,
/// which may be malformed. Each connection has a thread of its own.
class ScriptedPeer {
public:
    ScriptedPeer() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

    /// `hang_up`: the connection ends after the last answer. Otherwise it stays open and silent.
    Fd connect(std::vector<std::string> answers, bool hang_up = false) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throwErrno("socketpair");
        }
        const std::lock_guard lock(mutex_);
        jobs_.push_back({Fd(ends[1]), std::move(answers), hang_up});
        changed_.notify_all();
        return Fd(ends[0]);
    }
    /// Returns the number of frames that the peer has received in all.
    std::size_t heard() const {
        const std::lock_guard lock(mutex_);
        return heard_;
    }

private:
    struct Job {
        Fd fd;
        std::vector<std::string> answers;
        bool hang_up;
    };

    static bool readAll(int fd, char* into, std::size_t size) {
        while (size > 0) {
            const ssize_t n = ::recv(fd, into, size, 0);
            if (n <= 0) return false;
            into += n;
            size -= static_cast<std::size_t>(n);
        }
        return true;
    }
    bool readFrame(int fd) {
        std::array<unsigned char, kHeaderSize> head;
        if (!readAll(fd, reinterpret_cast<char*>(head.data()), head.size())) return false;
        std::string payload(getU32(head.data()), '\0');
        if (!readAll(fd, payload.data(), payload.size())) return false;
        const std::lock_guard lock(mutex_);
        ++heard_;
        return true;
    }
    void run(const std::stop_token& stop) {
        for (;;) {
            std::optional<Job> job;
            {
                std::unique_lock lock(mutex_);
                if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            // A client opens its connections one after the other, but keeps the first one open. So
            // each connection is served by a thread of its own.
            workers_.emplace_back(
                [this, mine = std::make_shared<Job>(std::move(*job))] { serve(*mine); });
            if (workers_.size() > 64) workers_.erase(workers_.begin(), workers_.begin() + 32);
        }
    }
    void serve(Job& job) {
        for (const std::string& answer : job.answers) {
            if (!readFrame(job.fd.get())) return;
            ::send(job.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }
        if (job.hang_up) ::shutdown(job.fd.get(), SHUT_WR);
        while (readFrame(job.fd.get())) {
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Job> jobs_;               // guarded by mutex_
    std::size_t heard_ = 0;              // guarded by mutex_
    std::vector<std::jthread> workers_;  // owned by thread_
    std::jthread thread_;
};

/// Waits for a result of another thread. Returns false after five seconds.
inline bool eventually(const std::function<bool()>& what) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!what()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::yield();
    }
    return true;
}

/// Counts and keeps the reports of an execution.
class Recorder final : public ExecSink {
public:
    void started(const ExecStart& start) override {
        const std::lock_guard lock(mutex_);
        started_ = true;
        repeated_ = start.repeated;
        interpreter_ = start.interpreter;
        context_ = start.context;
    }
    void result(std::string_view json) override {
        const std::lock_guard lock(mutex_);
        results_.push_back({received_, std::string(json)});
    }
    void output(int, std::uint64_t offset, std::string_view bytes) override {
        const std::lock_guard lock(mutex_);
        if (first_ == UINT64_MAX) first_ = offset;
        if (keep_ > text_.size()) text_ += bytes.substr(0, keep_ - text_.size());
        received_ += bytes.size();
    }
    std::optional<std::uint64_t> unread() const override { return at(&Recorder::unread_); }
    void exited(const ExecResult& result) override {
        const std::lock_guard lock(mutex_);
        result_ = result;
        ++lasts_;
    }
    void lost(const std::optional<AgentError>& error) override {
        const std::lock_guard lock(mutex_);
        if (error) refused_ = error->code();
        ++lasts_;
    }
    bool done() const { return at(&Recorder::lasts_) > 0; }
    void readerLags(std::optional<std::uint64_t> bytes) {
        const std::lock_guard lock(mutex_);
        unread_ = bytes;
    }
    template <typename T>
    T at(T Recorder::*field) const {
        const std::lock_guard lock(mutex_);
        return this->*field;
    }

    bool started_ = false;
    bool repeated_ = false;
    std::string interpreter_;
    std::string context_;
    std::vector<std::pair<std::uint64_t, std::string>> results_;  ///< with the bytes before each
    std::string text_;
    std::size_t keep_ = 1U << 20U;
    std::uint64_t first_ = UINT64_MAX;
    std::uint64_t received_ = 0;
    std::optional<std::uint64_t> unread_;  ///< the unread bytes of a reader that is waited for
    std::optional<ExecResult> result_;
    std::string refused_;
    int lasts_ = 0;

private:
    mutable std::mutex mutex_;
};

}  // namespace hearth::agent::test
