#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The server's record that it has begun to bind a sandbox, written before the frame is sent, or to
/// end it, written before anybody is told. After a restart a sandbox is warm only if its agent
/// reports unbound and no mark exists, so a lying agent cannot be handed out twice; one whose end
/// is marked ends.
///
/// One file on tmpfs, mapped into memory: slots of 64 bytes, each empty or a sandbox id, and in the
/// last byte its end. A mark is a store to memory, which survives the process as the file does;
/// creating a file per mark took 60 to 90 us of every claim. Thread-safe.
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
    /// Marks that it ends, for a reason that the caller numbers (below 255); the first one counts.
    /// Cannot fail if the sandbox has a mark already, else as set().
    void end(const SandboxId& id, std::uint8_t reason);
    /// The reason of its end; nullopt if none is marked.
    std::optional<std::uint8_t> ended(const SandboxId& id) const;
    void clear(const SandboxId& id);
    bool exists(const SandboxId& id) const;
    std::vector<SandboxId> all() const;

private:
    void resize(std::size_t slots) HEARTH_REQUIRES(mutex_);
    char* slot(std::size_t index) const HEARTH_REQUIRES(mutex_);
    /// The slot of the id, which it gets if it has none. Throws as set().
    char* slotOf(const SandboxId& id) HEARTH_REQUIRES(mutex_);

    Fd file_;
    std::string path_;
    mutable Mutex mutex_;
    char* memory_ HEARTH_GUARDED_BY(mutex_) = nullptr;
    std::size_t slots_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::map<SandboxId, std::size_t> taken_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::size_t> free_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool
