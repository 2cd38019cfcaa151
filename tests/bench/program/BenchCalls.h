#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/cli/remote/Remote.h"
#include "base/Error.h"

namespace hearth::cli {

/// How often something happened in which way: {"zygote": 150}.
using BenchCounts = std::map<std::string, int>;

/// An answer that is not the expected one.
Error wrongAnswer(const std::string& what, const Json& answer);

/// Runs `body` at `target` and verifies status, exit code and output. Gives the answer; throws
/// where it is not the expected one, or where `interpreter` is named and another one ran it.
Json benchExecute(Remote& remote, const std::string& target, const Json& body,
                  const std::string& expected, const std::string& interpreter = {});

/// What the operations of the benchmark run, and what they must print.
Json shellWork();
Json commandWork();  ///< the same as a command, which a parked shell may take
Json echoWork();     ///< a program without a shell; a fake sandbox knows it too
Json pythonWork();
Json coldPythonWork();  ///< its environment acts only at an interpreter's start
Json numpyWork();
Json contextWork(const std::string& context);
inline constexpr const char* kShellPrints = "hi\n";
inline constexpr const char* kPythonPrints = "1\n";
inline constexpr const char* kNumpyPrints = "6\n";
inline constexpr const char* kPythonCode = "print(1)";
inline constexpr const char* kNumpyCode = "import numpy; print(numpy.arange(4).sum())";

/// "warm" or "cold", as a claim's ledger has it; "unknown" without one.
std::string claimSource(const Json& answer);

/// One claimed workspace, deleted at the end. Not thread-safe. `remote` must outlive it.
class BenchWorkspace {
public:
    /// `pool` empty: the server's default.
    BenchWorkspace(Remote& remote, const std::string& pool);
    /// Takes one that was claimed otherwise; `made` is the server's answer.
    BenchWorkspace(Remote& remote, Json made);
    ~BenchWorkspace();
    BenchWorkspace(BenchWorkspace&& other) noexcept;
    BenchWorkspace& operator=(BenchWorkspace&&) = delete;

    const Json& made() const { return made_; }
    /// "/v1/workspaces/ws_…".
    const std::string& target() const { return target_; }
    std::string executions() const { return target_ + "/executions"; }
    /// Gives it up: the caller deletes target().
    std::string release() { return std::exchange(target_, {}); }
    std::string newPythonContext();
    /// What the kernel charges its cgroup with, by the server's word.
    std::uint64_t memoryBytes();

private:
    Remote& remote_;
    Json made_;
    std::string target_;
};

}  // namespace hearth::cli
