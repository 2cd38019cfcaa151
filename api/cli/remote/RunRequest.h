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
    std::string workspace;  ///< its id; empty: a fresh one
    /// The request to POST to `context_target` first; the id in its answer becomes the body's
    /// `context`. Null: no such request.
    Json context = nullptr;
    std::string context_target;
    bool shows_value = false;     ///< the value of a last expression is printed, as a REPL does
    std::string idempotency_key;  ///< fresh, so that the request may be sent again
    /// Files to PUT into an existing workspace first: target and bytes.
    std::vector<std::pair<std::string, std::string>> uploads;
};

/// Finds the id of the workspace that a word means.
using FindWorkspace = std::function<std::string(const std::string& word)>;

/// Makes the request of `hearth run` from flags and arguments; reads the script and the files. With
/// --stdin the program's input stays open for InputPump. Throws UsageError where they do not say
/// exactly one thing to run.
RunRequest makeRunRequest(const Options& options, const FindWorkspace& find = {});
/// The same of `hearth exec`, whose program is the words after the workspace.
RunRequest makeExecRequest(const Options& options, const FindWorkspace& find = {});

/// The flags of both, for the program itself: --env, --cwd, --stdin, --detach, --output-limit.
std::vector<Flag> programFlags();

/// The object of a repeated flag's NAME=VALUE pairs. Throws UsageError for one that is none.
Json variablesOf(const Options& options, std::string_view flag);

/// The flags that limit a fresh workspace, and the JSON object of those that were given. Throws
/// UsageError for a bad size.
std::vector<Flag> limitFlags();
Json limitsOf(const Options& options);
/// The `gpu` of a claim, from --gpus and --gpu-product; empty without them.
Json gpuOf(const Options& options);

/// The language of a file by its extension ("python" for "x.py"); empty where unknown.
std::string languageOf(const std::string& path);

}  // namespace hearth::cli
