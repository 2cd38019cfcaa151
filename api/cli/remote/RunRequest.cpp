#include "api/cli/remote/RunRequest.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "api/config/TextFile.h"
#include "base/Ids.h"
#include "base/Units.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxScript = 4U << 20U;
/// The longest run that the server allows, in seconds.
constexpr int kLongestRun = 24 * 3600;
/// The least --output-limit for which the program waits for its reader.
constexpr std::uint64_t kLeastPaced = 1U << 20U;

struct Language {
    std::string_view extension;
    std::string_view name;
    std::string_view interpreter = {};  ///< for a script with arguments; empty: compiled
};

constexpr std::array<Language, 18> kLanguages = {{
    {".py", "python", "python3"},
    {".sh", "sh", "sh"},
    {".bash", "bash", "bash"},
    {".js", "node", "node"},
    {".cjs", "node", "node"},
    {".mjs", "mjs", "node"},
    {".rb", "ruby", "ruby"},
    {".pl", "perl", "perl"},
    {".lua", "lua", "lua"},
    {".r", "r", "Rscript"},
    {".R", "r", "Rscript"},
    {".ts", "typescript"},
    {".c", "c"},
    {".cc", "cpp"},
    {".cpp", "cpp"},
    {".go", "go"},
    {".rs", "rust"},
    {".java", "java"},
}};

const Language* findLanguage(const std::string& path) {
    const std::string extension = std::filesystem::path(path).extension().string();
    for (const Language& language : kLanguages) {
        if (language.extension == extension) return &language;
    }
    return nullptr;
}

Json inlineFile(const std::string& path, const std::string& bytes) {
    if (isUtf8(bytes)) return {{"path", path}, {"text", bytes}};
    return {{"path", path}, {"base64", base64Encode(bytes)}};
}

/// Adds a file that is put into the workspace before the program starts.
void giveFile(const std::string& name, const std::string& bytes, RunRequest& request) {
    if (!request.workspace.empty()) {
        request.uploads.emplace_back(
            "/v1/workspaces/" + percentEncode(request.workspace) + "/files/" + percentEncode(name),
            bytes);
        return;
    }
    Json& files = request.body["files"];
    if (files.is_null()) files = Json::array();
    files.push_back(inlineFile(name, bytes));
}

std::string readGivenFile(const std::string& path) {
    if (std::filesystem::is_directory(path)) {
        throw UsageError("--file " + path + " is a directory",
                         "W=$(hearth open); hearth cp -r " + path + " $W: ; hearth run -w $W …");
    }
    return readTextFile(path, kMaxScript);
}

std::string nameOfFile(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

/// A script with arguments becomes a file and an argument vector; plain code has no arguments.
void scriptWithArguments(const Options& options, const std::string& script,
                         const std::vector<std::string>& arguments, RunRequest& request) {
    const auto named = options.get("language");
    const Language* language = findLanguage(named ? "x." + *named : script);
    if (named && language == nullptr) {
        const auto found = std::ranges::find(kLanguages, *named, &Language::name);
        if (found != kLanguages.end()) language = &*found;
    }
    if (language == nullptr || language->interpreter.empty() || script == "-") {
        throw UsageError("no interpreter is known for " + script + " with arguments",
                         "for a program of the image: hearth run -- PROGRAM ARG…");
    }
    const std::string name = nameOfFile(script);
    const std::string bytes = readTextFile(script, kMaxScript);
    request.body["argv"] = Json::array({language->interpreter, name});
    for (const std::string& argument : arguments) request.body["argv"].push_back(argument);
    giveFile(name, bytes, request);
}

/// Users often type a program of the image where a script is expected, also before a script.
void mustExist(const std::string& script, const std::vector<std::string>& arguments) {
    if (script == "-" || std::filesystem::exists(script)) return;
    const bool before_script =
        !arguments.empty() && std::filesystem::is_regular_file(arguments.front());
    throw UsageError("there is no file " + script,
                     before_script
                         ? "for the script: hearth run " + arguments.front()
                         : "for a program of the image: hearth run -- " + nameOfFile(script));
}

void whatToRun(const Options& options, RunRequest& request) {
    const auto code = options.get("code");
    const auto command = options.get("command");
    const bool script = !options.positional().empty();
    const bool vector = !script && !options.rest().empty();
    std::vector<std::string> arguments;
    if (script) arguments.assign(options.positional().begin() + 1, options.positional().end());
    arguments.insert(arguments.end(), options.rest().begin(), options.rest().end());
    if (script) mustExist(options.positional()[0], arguments);
    const int given = (code ? 1 : 0) + (command ? 1 : 0) + (script ? 1 : 0) + (vector ? 1 : 0);
    if (given != 1) {
        throw UsageError(given == 0 ? "nothing to run" : "more than one thing to run",
                         "give one of -c CODE, --command LINE, a SCRIPT, - for standard input, "
                         "or -- PROGRAM ARG…");
    }
    if (options.get("language") && !code && !script) {
        throw UsageError("--language goes with code", "give -c CODE or a SCRIPT");
    }
    Json& body = request.body;
    if (command) {
        body["command"] = *command;
    } else if (script && !arguments.empty()) {
        scriptWithArguments(options, options.positional()[0], arguments, request);
    } else if (code || script) {
        const std::string text = code ? *code : readTextFile(options.positional()[0], kMaxScript);
        if (!isUtf8(text)) {
            throw UsageError("the code is not UTF-8", "for a binary use `hearth run -- PROGRAM`");
        }
        body["code"] = text;
        std::string language = options.get("language", "");
        if (language.empty() && script) language = languageOf(options.positional()[0]);
        if (language.empty() && script && options.positional()[0] != "-") {
            throw UsageError("the language of " + options.positional()[0] + " is unknown",
                             "give -l LANGUAGE");
        }
        if (!language.empty()) body["language"] = language;
        request.shows_value = code.has_value();
    } else {
        body["argv"] = options.rest();
    }
}

/// With --context, code runs in the workspace's interpreter of that name.
void whereItStays(const Options& options, RunRequest& request) {
    const auto name = options.get("context");
    if (!name) return;
    if (request.workspace.empty()) {
        throw UsageError("--context needs a workspace",
                         "a one shot ends with its run: give --workspace");
    }
    if (!request.body.contains("code")) {
        throw UsageError("--context goes with code", "give -c CODE or a SCRIPT without arguments");
    }
    for (const char* own : {"env", "cwd", "stdin"}) {
        if (options.source(own) == Source::Flag) {
            throw UsageError(std::string("--context and --") + own + " exclude each other",
                             "set these by code that runs in the interpreter");
        }
    }
    request.context = {{"name", *name}};
    if (request.body.contains("language")) request.context["language"] = request.body["language"];
    request.context_target = "/v1/workspaces/" + percentEncode(request.workspace) + "/contexts";
}

}  // namespace

Json variablesOf(const Options& options, std::string_view flag) {
    Json map = Json::object();
    for (const std::string& pair : options.all(flag)) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos && !pair.empty() && flag == "env") {
            if (const auto own = options.variable(pair)) {  // like docker's -e NAME
                map[pair] = *own;
                continue;
            }
        }
        if (equals == 0 || equals == std::string::npos) {
            throw UsageError("--" + std::string(flag) + " \"" + pair + "\" has no value",
                             "write --" + std::string(flag) + " NAME=VALUE");
        }
        map[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    return map;
}

std::vector<Flag> limitFlags() {
    return {
        ownFlag("cpu", 0, "N", "Limit it to this many processors, such as 0.5; at most the pool's"),
        ownFlag("memory", 0, "SIZE",
                "Limit it to this much memory, such as 256Mi; at most the pool's"),
        ownFlag("pids", 0, "N", "Limit it to this many processes; at most the pool's"),
        ownFlag("gpus", 0, "N", "Use a pool whose sandboxes have this many GPUs"),
        ownFlag("gpu-product", 0, "NAME", "Use a pool with GPUs of this product, such as H100")};
}

Json gpuOf(const Options& options) {
    Json gpu = Json::object();
    if (options.get("gpus")) gpu["count"] = options.number("gpus", 1, 1, 16);
    if (const auto product = options.get("gpu-product")) gpu["product"] = *product;
    return gpu;
}

Json limitsOf(const Options& options) {
    Json limits = Json::object();
    if (const auto cpu = options.get("cpu")) {
        const auto milli = parseMilliCpu(*cpu);
        if (!milli) throw UsageError("--cpu \"" + *cpu + "\" is not a number", "write 0.5 or 500m");
        limits["cpu"] = *milli / 1000.0;
    }
    if (const auto memory = options.size("memory")) limits["memoryBytes"] = *memory;
    if (options.get("pids")) limits["pids"] = options.number("pids", 0, 1, 1'000'000);
    return limits;
}

std::string languageOf(const std::string& path) {
    const Language* language = findLanguage(path);
    return language == nullptr ? std::string() : std::string(language->name);
}

std::vector<Flag> programFlags() {
    return {
        ownFlag("env", 'e', "K=V", "A variable for the program", true),
        ownFlag("cwd", 0, "DIR", "Where it runs; relative to the workspace"),
        ownFlag("stdin", 'i', "", "Send standard input to the program"),
        ownFlag("detach", 'd', "", "Print its id and leave it running; see `hearth logs`"),
        ownFlag(
            "output-limit", 0, "SIZE",
            "How much output the server keeps; with less than 1Mi a slow reader may miss some")};
}

namespace {

RunRequest newRequest(const std::string& workspace) {
    RunRequest request;
    request.workspace = workspace;
    request.body = Json::object();
    request.idempotency_key = newId("run_");
    request.target = workspace.empty()
                         ? "/v1/executions"
                         : "/v1/workspaces/" + percentEncode(workspace) + "/executions";
    return request;
}

void aboutProgram(const Options& options, RunRequest& request) {
    if (Json env = variablesOf(options, "env"); !env.empty()) request.body["env"] = std::move(env);
    if (const auto cwd = options.get("cwd")) request.body["cwd"] = *cwd;
    if (const auto timeout = options.duration("timeout")) {
        request.body["timeoutSeconds"] = static_cast<double>(timeout->count()) / 1000.0;
    } else if (options.on("tty") || options.on("detach")) {
        request.body["timeoutSeconds"] = kLongestRun;  // a person, or nobody, waits for its end
    }
    if (const auto limit = options.size("output-limit")) {
        request.body["outputLimitBytes"] = *limit;
    }
    if (options.on("stdin")) request.body["stdinOpen"] = true;
    if (!options.on("detach")) {
        // No output is lost, however slowly it is read; a lower limit leaves no room.
        if (options.size("output-limit").value_or(kLeastPaced) >= kLeastPaced)
            request.body["paced"] = true;
        return;
    }
    if (options.on("stdin")) {
        throw UsageError("--detach and --stdin exclude each other",
                         "hearth attach --stdin EXECUTION sends input to it later");
    }
    request.body["background"] = true;
}

/// Refuses flags that choose or limit a fresh workspace: an existing one has that already.
void refuseBesideWorkspace(const Options& options) {
    for (const char* flag : {"pool", "image"}) {
        if (options.source(flag) != Source::Flag) continue;
        throw UsageError(std::string("--") + flag + " and --workspace exclude each other",
                         std::string("a workspace already has its ") + flag);
    }
    for (const Flag& flag : limitFlags()) {
        if (!options.get(flag.name)) continue;
        throw UsageError("--" + flag.name + " and --workspace exclude each other",
                         "a workspace has the limits that it was opened with");
    }
}

/// Fails before the run, because its results would be lost.
void refuseNoFolder(const Options& options, const std::string& flag) {
    const auto path = options.get(flag);
    if (!path) return;
    if (!path->empty() && (!std::filesystem::exists(*path) || std::filesystem::is_directory(*path)))
        return;
    throw UsageError("--" + flag + " \"" + *path + "\" is not a directory",
                     "name a directory; it is made if it does not exist");
}

std::string found(const FindWorkspace& find, const std::string& word) {
    return find ? find(word) : word;
}

}  // namespace

RunRequest makeRunRequest(const Options& options, const FindWorkspace& find) {
    const auto workspace = options.get("workspace");
    if (workspace) refuseBesideWorkspace(options);
    options.duration("timeout");  // `run -i -t SCRIPT` takes the script for it: refused here
    for (const char* folder : {"out", "save-results"}) refuseNoFolder(options, folder);
    RunRequest request = newRequest(workspace ? found(find, *workspace) : "");
    whatToRun(options, request);
    if (!workspace) {
        if (const auto pool = options.get("pool")) request.body["pool"] = *pool;
        if (const auto image = options.get("image")) request.body["image"] = *image;
        if (Json limits = limitsOf(options); !limits.empty()) {
            request.body["limits"] = std::move(limits);
        }
        if (Json gpu = gpuOf(options); !gpu.empty()) request.body["gpu"] = std::move(gpu);
    }
    aboutProgram(options, request);
    for (const std::string& path : options.all("file")) {
        giveFile(nameOfFile(path), readGivenFile(path), request);
    }
    if (options.get("out")) {
        if (options.on("detach")) {
            throw UsageError("--out and --detach exclude each other",
                             "use a workspace, and `hearth cp` after the end");
        }
        request.body["collect"] = Json::array({"**"});
    }
    if (const auto packages = options.all("packages"); !packages.empty()) {
        request.body["packages"] = packages;
    }
    if (options.on("auto-packages")) {
        if (!request.body.contains("code")) {
            throw UsageError("--auto-packages goes with code",
                             "give -c CODE or a SCRIPT without arguments, or name --packages");
        }
        request.body["autoPackages"] = true;
    }
    if (options.on("stdin") && !options.positional().empty() && options.positional()[0] == "-") {
        throw UsageError("standard input cannot be both code and input",
                         "put the code into a file");
    }
    whereItStays(options, request);
    return request;
}

RunRequest makeExecRequest(const Options& options, const FindWorkspace& find) {
    if (options.rest().empty()) {
        throw UsageError("nothing to run", "hearth exec WORKSPACE PROGRAM ARG…");
    }
    RunRequest request = newRequest(found(find, options.positional()[0]));
    request.body["argv"] = options.rest();
    aboutProgram(options, request);
    return request;
}

}  // namespace hearth::cli
