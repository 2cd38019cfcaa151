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
    std::string fingerprint;  ///< of the request that made it, if that had a key
    WallTime created{};
};

/// The contexts of one workspace as this server knows them, and what each runs. Their agent has the
/// last word. Thread-safe.
class ContextSet {
public:
    /// False if it was there already; it is then left as it is.
    bool add(ContextFacts facts);
    /// True if it was there.
    bool erase(const std::string& id);
    /// As erase(), for one that died with an execution; not if that end was expected.
    bool eraseWith(const std::string& id, const std::string& execution);
    /// Forgets all; how many there were.
    std::size_t clear();

    /// False if it runs another execution already.
    bool begin(const std::string& id, const std::string& execution);
    void end(const std::string& id, const std::string& execution);
    /// We are about to end its execution: that end says nothing about the context.
    void expectEnd(const std::string& id);

    std::optional<ContextFacts> find(const std::string& id) const;
    /// The execution that it runs; empty if none.
    std::string running(const std::string& id) const;
    std::vector<ContextFacts> all() const;

private:
    struct Entry {
        ContextFacts facts;
        std::string running;
        std::string spared;  ///< it outlives this execution, whatever the agent says
    };

    mutable Mutex mutex_;
    std::map<std::string, Entry> entries_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
