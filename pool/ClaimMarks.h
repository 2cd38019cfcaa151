#pragma once

#include <string>
#include <vector>

#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The server's own word that it has begun to bind a sandbox: one empty file on tmpfs for each,
/// written before the frame is sent. After a restart a sandbox is warm only if its agent says
/// unbound and no mark exists, so a lying agent cannot be handed out twice (DESIGN section 2).
/// Thread-safe; each call is some microseconds.
class ClaimMarks {
public:
    /// `directory` exists and belongs to the server.
    explicit ClaimMarks(std::string directory) : directory_(std::move(directory)) {}

    /// Throws std::system_error if the mark cannot be made; the sandbox must then not be bound.
    void set(const SandboxId& id) const;
    void clear(const SandboxId& id) const;
    bool exists(const SandboxId& id) const;
    std::vector<SandboxId> all() const;

private:
    std::string directory_;
};

}  // namespace hearth::pool
