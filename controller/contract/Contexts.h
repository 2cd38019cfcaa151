#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/contract/Principal.h"

namespace hearth::controller {

/// A parsed `POST …/contexts`.
struct ContextRequest {
    std::string language;  ///< empty: "python" if the image has it, else the image's first language
    std::string cwd;
    std::map<std::string, std::string> env;
    std::string name;  ///< the workspace's context of that name and language, or a new one
    std::string idempotency_key;  ///< not together with a name
    std::string fingerprint;      ///< the body's; needed with a key
};

struct ContextView {
    std::string id;
    std::string workspace_id;
    std::string tenant;
    std::string language;
    std::string name;  ///< empty: none
    std::string cwd;
    std::string created_at;
    std::string running;    ///< the execution it runs now; empty: none
    bool replayed = false;  ///< it was there before this request
};

/// Stateful interpreters in workspaces. Scoped to the principal's tenant like Workspaces: NotFound
/// for another tenant's id, Gone with the reason for one that has ended. Every change counts as
/// activity of the workspace, and all contexts end with it. Thread-safe; calls block for the agent.
class Contexts {
public:
    virtual ~Contexts() = default;
    /// Errors: those of a workspace; QuotaExceeded (8 in one workspace), Unsupported (the language
    /// keeps no state), InvalidArgument (no such language), IdempotencyMismatch.
    virtual ContextView create(const Principal& who, const std::string& workspace,
                               const ContextRequest& request) = 0;
    virtual std::vector<ContextView> list(const Principal& who, const std::string& workspace) = 0;
    virtual ContextView get(const Principal& who, const std::string& id) = 0;
    /// Sends SIGINT to the code that it runs; Error(Conflict) if it runs none.
    virtual void interrupt(const Principal& who, const std::string& id) = 0;
    /// Returns the same context, emptied; the code that it runs is killed.
    virtual ContextView restart(const Principal& who, const std::string& id) = 0;
    /// Idempotent.
    virtual void remove(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
