#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The server's record that it has begun to bind a sandbox, written before the frame is sent. After
/// a restart a sandbox is warm only if its agent reports unbound and no mark exists, so a lying
/// agent cannot be handed out twice.
///
/// One file on tmpfs, mapped into memory: slots of 64 bytes, each empty or a sandbox id. A mark is
/// a store to memory, which survives the process as the file does; creating a file per mark took 60
/// to 90 us of every claim. Thread-safe.
class ClaimMarks {
public:
    /// Opens or creates the file; existing marks stay. Throws std::system_error.
    explicit ClaimMarks(const std::string& path);
    ~ClaimMarks();
    ClaimMarks(const ClaimMarks&) = delete;
    ClaimMarks& operator=(const ClaimMarks&) = delete;

    /// Throws std::system_error if the mark cannot be made (no memory for the file); the sandbox
    /// must then not be bound.
    void set(const SandboxId& id);
    void clear(const SandboxId& id);
    bool exists(const SandboxId& id) const;
    std::vector<SandboxId> all() const;

private:
    void resize(std::size_t slots) HEARTH_REQUIRES(mutex_);
    char* slot(std::size_t index) const HEARTH_REQUIRES(mutex_);

    Fd file_;
    std::string path_;
    mutable Mutex mutex_;
    char* memory_ HEARTH_GUARDED_BY(mutex_) = nullptr;
    std::size_t slots_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::map<SandboxId, std::size_t> taken_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::size_t> free_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool
