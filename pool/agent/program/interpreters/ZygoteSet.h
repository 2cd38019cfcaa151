#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/interpreters/ParkedShells.h"
#include "pool/agent/program/interpreters/Zygote.h"
#include "pool/agent/program/process/Environment.h"
#include "pool/agent/program/process/Languages.h"

namespace hearth::agent {

/// The zygotes of the image's languages, and the `prewarm` that asks for them and for parked
/// shells. On the loop's thread.
class ZygoteSet {
public:
    struct Owner {
        std::function<gid_t()> label;
        std::function<void(gid_t, pid_t)> forked;
        std::function<void(pid_t, int, const rusage&)> dead;
        std::function<void()> gone;
    };

    ZygoteSet(EventLoop& loop, const Settings& settings, const Environment& environment,
              const Languages& languages, ParkedShells& shells, Owner owner);
    ~ZygoteSet();

    /// Returns a fresh interpreter that runs code as if it had been started with `env`, or null.
    /// Starts the language's zygote if it is not there.
    std::unique_ptr<Parked> take(std::string_view language, const std::vector<std::string>& env);
    /// The same, or one that will be ready in a moment: work sent to it waits until then.
    std::unique_ptr<Parked> takeSoon(std::string_view language,
                                     const std::vector<std::string>& env);
    /// Work that an interpreter took up has been answered.
    void answered();
    void prewarm(Connection& connection, std::uint32_t stream, const JsonValue& body);
    /// A fact that a waiting prewarm asks about may have changed.
    void changed();
    void killAll();

    /// True if the process was a zygote.
    bool reaped(pid_t pid);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

private:
    class Waiting;

    Zygote* find(std::string_view language);
    /// True if its child can run as if it had been started with `env`.
    bool standsFor(const Zygote& zygote, const std::vector<std::string>& env) const;
    /// Returns the processes started in advance for this language; null if there are none.
    Warming* warming(std::string_view language);

    EventLoop& loop_;
    const Settings& settings_;
    const Environment& environment_;
    const Languages& languages_;
    ParkedShells& shells_;
    const Owner owner_;
    std::map<std::string, std::unique_ptr<Zygote>, std::less<>> all_;  ///< by language
    std::vector<Waiting*> waiting_;
};

}  // namespace hearth::agent
