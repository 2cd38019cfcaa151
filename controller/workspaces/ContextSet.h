#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::controller {

/// The facts of a context that do not change.
struct ContextFacts {
    std::string id;
    std::string language;
    std::string name;         ///< empty: none
    std::string cwd;          ///< empty: the workspace's root
    std::string fingerprint;  ///< the request's that made it, if it had a key
    WallTime created{};
};

/// The contexts of one workspace as this server knows them, and the execution that each runs. Their
/// agent's view takes precedence. Thread-safe.
class ContextSet {
public:
    /// False if it was already there; it is then left unchanged.
    bool add(ContextFacts facts);
    /// True if it was there.
    bool erase(const std::string& id);
    /// As erase(), for a context that died with an execution; not if that end was expected.
    bool eraseWith(const std::string& id, const std::string& execution);
    /// Forgets all contexts; returns how many there were.
    std::size_t clear();

    /// False if it already runs another execution.
    bool begin(const std::string& id, const std::string& execution);
    void end(const std::string& id, const std::string& execution);
    /// Call before ending its execution: that end then says nothing about the context.
    void expectEnd(const std::string& id);

    std::optional<ContextFacts> find(const std::string& id) const;
    /// Returns the execution that it runs; empty if none.
    std::string running(const std::string& id) const;
    std::vector<ContextFacts> all() const;

private:
    struct Entry {
        ContextFacts facts;
        std::string running;
        std::string spared;  ///< the context outlives this execution, whatever the agent reports
    };

    mutable Mutex mutex_;
    std::map<std::string, Entry> entries_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
