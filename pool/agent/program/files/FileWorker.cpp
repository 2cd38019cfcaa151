#include "pool/agent/program/files/FileWorker.h"

#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hearth::agent {

namespace {

constexpr std::size_t kStack = 262'144;
constexpr std::size_t kMaxOut = 524'288;
constexpr std::uint64_t kMaxCredit = 64U << 20U;

class Lock {
public:
    explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t& mutex_;
};

}  // namespace

/// The worker's mutex guards everything except `cancelled` and `operation`; the thread owns
/// `operation`.
struct FileWorker::Task {
    std::uint32_t stream = 0;
    bool activity = false;
    std::unique_ptr<FileOperation> operation;
    std::atomic<bool> cancelled{false};
    FileOperation::Next next = FileOperation::Next::Step;
    std::uint64_t credit = kInitialCredit;
    std::string input;
    bool input_ended = false;

    bool runnable(bool may_produce) const {
        if (cancelled) return true;
        switch (next) {
            case FileOperation::Next::Step:
                return may_produce;
            case FileOperation::Next::Credit:
                return may_produce && credit > 0;
            case FileOperation::Next::Input:
                return !input.empty() || input_ended;
            case FileOperation::Next::Done:
                break;
        }
        return false;
    }
};

/// The loop's end of a task.
class FileWorker::FileStream final : public Stream {
public:
    FileStream(FileWorker& worker, Connection& connection, std::shared_ptr<Task> task)
        : worker_(worker), connection_(connection), task_(std::move(task)) {}

    void data(std::string_view bytes) override {
        if (task_->activity) worker_.owner_.fileActivity();
        const Lock lock(worker_.mutex_);
        if (task_->input_ended || task_->input.size() + bytes.size() > kInitialCredit) {
            return connection_.closeAfterFlush();  // a client that ignores its window
        }
        task_->input += bytes;
        worker_.wake();
    }
    void end() override {
        const Lock lock(worker_.mutex_);
        task_->input_ended = true;
        worker_.wake();
    }
    void credit(std::uint32_t bytes) override {
        const Lock lock(worker_.mutex_);
        task_->credit = std::min(task_->credit + bytes, kMaxCredit);
        worker_.wake();
    }
    void detach() override {
        const Lock lock(worker_.mutex_);
        task_->cancelled = true;
        worker_.wake();
    }
    void pump() override { worker_.take(); }

private:
    FileWorker& worker_;
    Connection& connection_;
    std::shared_ptr<Task> task_;
};

FileWorker::FileWorker(EventLoop& loop, const Settings& settings, Owner& owner,
                       Connection& connection)
    : loop_(loop),
      settings_(settings),
      owner_(owner),
      connection_(&connection),
      passes_(connection.passes()),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FileWorker::~FileWorker() {
    if (started_) pthread_join(thread_, nullptr);
    if (event_) loop_.remove(event_.get());
}

bool FileWorker::start() {
    if (!event_ || !loop_.add(event_.get(), EPOLLIN, *this)) return false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    started_ = pthread_create(&thread_, &attributes, &FileWorker::run, this) == 0;
    pthread_attr_destroy(&attributes);
    return started_;
}

void FileWorker::request(std::uint32_t stream, std::string_view op, const JsonValue& body) {
    auto task = std::make_shared<Task>();
    task->stream = stream;
    task->activity = FileOperation::isActivity(op);
    task->operation = FileOperation::make(op, body);
    connection_->open(stream, std::make_unique<FileStream>(*this, *connection_, task));
    const Lock lock(mutex_);
    tasks_.push_back(std::move(task));
    wake();
}

void FileWorker::retire() {
    connection_ = nullptr;
    const Lock lock(mutex_);
    stop_ = true;
    for (const std::shared_ptr<Task>& task : tasks_) task->cancelled = true;
    wake();
}

void FileWorker::wake() {
    pthread_cond_signal(&changed_);
}

void FileWorker::poke() {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, and then the loop is woken anyway.
    if (write(event_.get(), &one, sizeof(one)) < 0) return;
}

void FileWorker::ready(std::uint32_t) {
    std::uint64_t count = 0;
    if (read(event_.get(), &count, sizeof(count)) < 0) return;
    bool over = false;
    {
        const Lock lock(mutex_);
        over = ended_;
    }
    if (over) return owner_.ended(*this);
    if (connection_ == nullptr) return;
    take();
    if (connection_ != nullptr) connection_->flush();
}

void FileWorker::take() {
    while (connection_ != nullptr && connection_->roomy()) {
        Outgoing next{};
        {
            const Lock lock(mutex_);
            if (out_.empty()) return;
            next = std::move(out_.front());
            out_.pop_front();
            out_bytes_ -= next.frame.payload.size();
            wake();
        }
        FileFrame& frame = next.frame;
        if (frame.fd) {
            connection_->sendPassing(frame.type, next.stream, frame.payload, std::move(frame.fd));
        } else {
            connection_->send(frame.type, next.stream, Channel::Bytes, frame.payload);
        }
        if (frame.type == FrameType::Reply || frame.type == FrameType::Error) {
            if (next.activity) owner_.fileActivity();
            connection_->finish(next.stream);
        }
    }
}

void* FileWorker::run(void* self) {
    auto& worker = *static_cast<FileWorker*>(self);
    if (!worker.settings_.keep_identity) {
        // Identities for files belong to the thread; the raw call changes no other thread.
        syscall(SYS_setgroups, 0, nullptr);
        setfsgid(worker.settings_.gid);
        setfsuid(worker.settings_.uid);
    }
    worker.work();
    return nullptr;
}

std::shared_ptr<FileWorker::Task> FileWorker::next() {
    const bool may_produce = out_bytes_ < kMaxOut;
    for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
        if (!(*it)->runnable(may_produce)) continue;
        std::shared_ptr<Task> task = *it;
        tasks_.erase(it);
        return task;
    }
    return nullptr;
}

void FileWorker::work() {
    const WorkspaceFiles workspace(settings_.root);
    while (true) {
        std::shared_ptr<Task> task;
        std::string input;
        bool input_ended = false;
        std::uint64_t credit = 0;
        {
            const Lock lock(mutex_);
            while (!(task = next()) && !(stop_ && tasks_.empty())) {
                pthread_cond_wait(&changed_, &mutex_);
            }
            if (!task) break;
            input.swap(task->input);
            input_ended = task->input_ended;
            credit = task->credit;
        }
        if (task->cancelled) {
            task->operation.reset();  // outside the lock: it may unlink
            continue;
        }
        FileTurn turn{workspace,   task->cancelled, credit, std::move(input),
                      input_ended, passes_,         {}};
        const FileOperation::Next after = task->operation->step(turn);
        if (after == FileOperation::Next::Done) task->operation.reset();
        const Lock lock(mutex_);
        task->next = after;
        for (FileFrame& frame : turn.out) {
            if (frame.type == FrameType::Data) task->credit -= frame.payload.size();
            out_bytes_ += frame.payload.size();
            if (!task->cancelled) {
                const bool activity = task->activity && frame.type != FrameType::Error;
                out_.push_back({task->stream, std::move(frame), activity});
            } else {
                out_bytes_ -= frame.payload.size();
            }
        }
        if (after != FileOperation::Next::Done) tasks_.push_back(std::move(task));
        if (!turn.out.empty()) poke();
    }
    const Lock lock(mutex_);
    ended_ = true;
    poke();
}

}  // namespace hearth::agent
