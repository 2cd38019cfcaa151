#include "pool/agent/client/Transfers.h"

#include <vector>

#include "pool/agent/client/AgentClient.h"

namespace hearth::agent {
namespace {

[[noreturn]] void throwCut() {
    throw AgentLost("the sandbox has ended");
}

}  // namespace

Transfers::File::File(Transfers& owner, Fd fd)
    : owner_(owner), fd_(std::make_shared<const Fd>(std::move(fd))) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.cut_) throwCut();
    owner_.files_.insert(this);
}

Transfers::File::~File() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.files_.erase(this);
}

std::shared_ptr<const Fd> Transfers::File::use() const {
    const std::lock_guard lock(owner_.mutex_);
    if (!fd_) throwCut();
    return fd_;
}

void Transfers::cut() {
    std::vector<std::shared_ptr<const Fd>> last;  // declared first: closed outside the lock
    const std::lock_guard lock(mutex_);
    cut_ = true;
    for (File* file : files_) last.push_back(std::move(file->fd_));
}

}  // namespace hearth::agent
