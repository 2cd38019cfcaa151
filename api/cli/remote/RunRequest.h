#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cli/remote/Remote.h"

namespace hearth::cli {

/// The request of `hearth run` to the server.
struct RunRequest {
    std::string target;  ///< where to POST
    Json body;
    std::string workspace;  ///< the workspace's id; empty: a fresh one
    /// The request that must be sent to `context_target` first; the id in its answer becomes the
    /// body's `context`. Null: no such request.
    Json context = nullptr;
    std::string context_target;
    bool shows_value = false;     ///< prints the value of a last expression, like a REPL
    std::string idempotency_key;  ///< fresh, so that the request can be repeated
    /// Files that are PUT into an existing workspace first: target and bytes.
    std::vector<std::pair<std::string, std::string>> uploads;
};

/// Finds the id of the workspace for a word.
using FindWorkspace = std::function<std::string(const std::string& word)>;

/// Makes the request of `hearth run` from flags and arguments; reads the script and the files. With
/// --stdin the program's input stays open for InputPump. Throws UsageError if they do not specify
/// exactly one thing to run.
RunRequest makeRunRequest(const Options& options, const FindWorkspace& find = {});
/// The same for `hearth exec`; its program is the words after the workspace.
RunRequest makeExecRequest(const Options& options, const FindWorkspace& find = {});

/// The flags of both, for the program itself: --env, --cwd, --stdin, --detach, --output-limit.
std::vector<Flag> programFlags();

/// The object of a repeated flag's NAME=VALUE pairs. Throws UsageError for a malformed pair.
Json variablesOf(const Options& options, std::string_view flag);

/// The flags that limit a fresh workspace, and the JSON object of the given ones. Throws UsageError
/// for a bad size.
std::vector<Flag> limitFlags();
Json limitsOf(const Options& options);
/// The `gpu` of a claim, from --gpus and --gpu-product; empty without them.
Json gpuOf(const Options& options);

/// The language of a file by its extension ("python" for "x.py"); empty if unknown.
std::string languageOf(const std::string& path);

}  // namespace hearth::cli
