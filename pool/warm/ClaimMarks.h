#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The server's own word that it has begun to bind a sandbox, written before the frame is sent.
/// After a restart a sandbox is warm only if its agent says unbound and no mark exists, so a lying
/// agent cannot be handed out twice (DESIGN section 2).
///
/// One file on tmpfs, mapped: a row of slots of 64 bytes, each empty or a sandbox id. A mark is a
/// store to memory, which outlives the process as the file does; making a file for each took 60 to
/// 90 us on the way of every claim. Thread-safe.
class ClaimMarks {
public:
    /// Opens or makes the file; existing marks stay. Throws std::system_error.
    explicit ClaimMarks(const std::string& path);
    ~ClaimMarks();
    ClaimMarks(const ClaimMarks&) = delete;
    ClaimMarks& operator=(const ClaimMarks&) = delete;

    /// Throws std::system_error if the mark cannot be made (no memory left for the file); the
    /// sandbox must then not be bound.
    void set(const SandboxId& id);
    void clear(const SandboxId& id);
    bool exists(const SandboxId& id) const;
    std::vector<SandboxId> all() const;

private:
    void resize(std::size_t slots);
    char* slot(std::size_t index) const;

    Fd file_;
    std::string path_;
    mutable std::mutex mutex_;
    char* memory_ = nullptr;                  // guarded by mutex_
    std::size_t slots_ = 0;                   // guarded by mutex_
    std::map<SandboxId, std::size_t> taken_;  // guarded by mutex_
    std::vector<std::size_t> free_;           // guarded by mutex_
};

}  // namespace hearth::pool
