#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/cli/BenchOperation.h"
#include "api/cli/Remote.h"

namespace hearth::cli {

/// The names of --only.
const std::vector<std::string>& benchNames();

/// Hearth's side of the benchmark: one client, one kept-alive connection, one workspace for what
/// runs in a claimed one. The destructor deletes the workspace. Not thread-safe.
class BenchServer {
public:
    /// `pool` empty: the server's default. Opens the workspace and tries Python in it.
    BenchServer(Remote& remote, const std::string& pool);
    ~BenchServer();
    BenchServer(const BenchServer&) = delete;
    BenchServer& operator=(const BenchServer&) = delete;

    /// The operations of those names; they refer to this object.
    std::vector<BenchOperation> operations(const std::set<std::string>& names);
    const std::string& pool() const { return pool_; }
    const std::string& sandbox() const { return sandbox_; }
    bool hasPython() const { return has_python_; }
    /// How many of the measured claims found a warm sandbox, and how many did not.
    std::pair<int, int> claims() const { return {warm_, cold_}; }
    /// How often code ran in which kind of interpreter ("zygote", "cold", "context").
    const std::map<std::string, int>& interpreters() const { return interpreters_; }

private:
    void waitForWarm();
    void countClaim(const Json& answer);
    Json execute(const std::string& target, const Json& body, const std::string& expected);
    void claim(const Record& record);
    void oneShot(const Record& record);
    void context(const Record& record);
    void files(const Record& record);

    Remote& remote_;
    std::string pool_;
    std::string workspace_;  ///< "/v1/workspaces/ws_…"
    std::string sandbox_;    ///< of that workspace
    bool has_python_ = true;
    int warm_ = 0;
    int cold_ = 0;
    std::string context_;  ///< made when it is first needed
    std::map<std::string, int> interpreters_;
};

/// The contents that both sides write and read back.
struct BenchFile {
    std::string series;  ///< "1 KiB"
    std::string name;
    std::string bytes;
};
const std::vector<BenchFile>& benchFiles();

}  // namespace hearth::cli
