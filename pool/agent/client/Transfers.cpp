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
    const MutexLock lock(owner_.mutex_);
    if (owner_.cut_) throwCut();
    owner_.files_.insert(this);
}

Transfers::File::~File() {
    const MutexLock lock(owner_.mutex_);
    owner_.files_.erase(this);
}

std::shared_ptr<const Fd> Transfers::File::use() const {
    const MutexLock lock(owner_.mutex_);
    if (!fd_) throwCut();
    return fd_;
}

void Transfers::cut() {
    std::vector<std::shared_ptr<const Fd>> last;  // declared first: closed outside the lock
    const MutexLock lock(mutex_);
    cut_ = true;
    for (File* file : files_) last.push_back(file->giveUp());
}

}  // namespace hearth::agent
