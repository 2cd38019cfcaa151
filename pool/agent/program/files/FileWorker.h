#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/Fd.h"
#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/files/FileOperation.h"

namespace hearth::agent {

/// The file operations of one connection, on a thread of its own that always has the tenant's
/// identity for files. The loop hands requests and bytes in and takes frames out; neither side
/// waits for the other. Streams take turns, so one without credit stops only itself.
class FileWorker final : public Source {
public:
    /// The events of a file operation.
    class Owner {
    public:
        /// Bytes came or went, or files were changed.
        virtual void fileActivity() = 0;
        /// The thread has ended after retire(): the owner buries the worker.
        virtual void ended(FileWorker& worker) = 0;

    protected:
        ~Owner() = default;
    };

    FileWorker(EventLoop& loop, const Settings& settings, Owner& owner, Connection& connection);
    /// The thread must have ended (ended() was called) or never started.
    ~FileWorker() override;

    bool start();
    /// Opens the stream and queues the operation.
    void request(std::uint32_t stream, std::string_view op, const JsonValue& body);
    /// The connection has ended: the thread ends after its current step.
    void retire();
    bool serves(const Connection& connection) const noexcept { return connection_ == &connection; }

    void ready(std::uint32_t events) override;
    /// Moves finished frames into the connection while it has room.
    void take();

private:
    struct Task;
    class FileStream;
    struct Outgoing {
        std::uint32_t stream;
        FileFrame frame;
        bool activity;
    };

    static void* run(void* self);
    void work();
    std::shared_ptr<Task> next();
    void poke();
    void wake();

    EventLoop& loop_;
    const Settings& settings_;
    Owner& owner_;
    Connection* connection_;  ///< null once retired; the loop's thread only
    const bool passes_;       ///< result of Connection::passes()
    Fd event_;
    pthread_t thread_{};
    bool started_ = false;

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    // Under mutex_:
    std::deque<std::shared_ptr<Task>> tasks_;
    std::deque<Outgoing> out_;
    std::size_t out_bytes_ = 0;
    bool stop_ = false;
    bool ended_ = false;
};

}  // namespace hearth::agent
