#include "pool/image/ImageFacts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/spec/LanguageName.h"
#include "pool/spec/LanguageProbe.h"
#include "pool/sys/Supervise.h"

namespace hearth::pool::image {
namespace {

constexpr std::size_t kMaxEnv = 32U << 10U;
constexpr std::size_t kMaxTable = 64U << 10U;
constexpr std::size_t kMaxWorkdir = 1024;
constexpr auto kProbeLimit = std::chrono::seconds(20);

constexpr std::array kNotTakenBegin{"LD_",     "NVIDIA_",    "CUDA_VISIBLE", "HEARTH_",
                                    "MALLOC_", "BASH_FUNC_", "DYLD_"};
constexpr std::array kNotTaken{"HOME",
                               "USER",
                               "LOGNAME",
                               "PWD",
                               "OLDPWD",
                               "TMPDIR",
                               "SHELL",
                               "HOSTNAME",
                               "GLIBC_TUNABLES",
                               "GCONV_PATH",
                               "LOCPATH",
                               "BASH_ENV",
                               "ENV",
                               "SHELLOPTS",
                               "PROMPT_COMMAND",
                               "IFS",
                               "PS4",
                               "PYTHONSTARTUP",
                               "PYTHONINSPECT",
                               "PYTHONBREAKPOINT",
                               "NODE_OPTIONS",
                               "PERL5OPT",
                               "RUBYOPT",
                               "JAVA_TOOL_OPTIONS"};

bool takeable(const std::string& variable) {
    const std::size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos) return false;
    if (variable.find('\0') != std::string::npos || !isUtf8(variable)) return false;
    const std::string name = variable.substr(0, equals);
    return std::none_of(kNotTakenBegin.begin(), kNotTakenBegin.end(),
                        [&](const char* begin) { return name.starts_with(begin); }) &&
           std::none_of(kNotTaken.begin(), kNotTaken.end(),
                        [&](const char* each) { return name == each; });
}

std::string pathOf(const std::vector<std::string>& env) {
    constexpr std::string_view kPath = "PATH=";
    for (const std::string& variable : env) {
        if (variable.starts_with(kPath)) return variable.substr(kPath.size());
    }
    return {};
}

/// Runs in the tree: the path of a program; empty if it is missing.
std::string find(const std::string& program, const std::string& path) {
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t colon = std::min(path.find(':', at), path.size());
        const std::string directory = path.substr(at, colon - at);
        at = colon + 1;
        if (!directory.starts_with('/')) continue;
        std::string file = directory;
        if (!file.ends_with('/')) file += '/';
        file += program;
        struct stat status {};
        if (::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            (status.st_mode & 0111U) != 0) {
            return file;
        }
    }
    return {};
}

/// Runs in the tree: the image's own table; null if it has none.
Json ownTable() {
    const Fd fd(::open("/etc/hearth/languages.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
    std::string text(kMaxTable, '\0');
    const ssize_t n = ::read(fd.get(), text.data(), text.size());
    if (n < 0) return nullptr;
    Json table = Json::parse(text.substr(0, static_cast<std::size_t>(n)), nullptr, false);
    return table.is_object() ? table : Json(nullptr);
}

/// A sandbox of an image with another name in its table could never be used.
void checkNames(const Json& table) {
    if (table.size() > kMostLanguages) {
        throw Error(ErrorCode::InvalidArgument, "the image's /etc/hearth/languages.json has " +
                                                    std::to_string(table.size()) + " languages")
            .hint("at most " + std::to_string(kMostLanguages) + " are allowed");
    }
    for (const auto& [name, how] : table.items()) {
        if (isLanguageName(name)) continue;
        throw Error(ErrorCode::InvalidArgument,
                    "the image's /etc/hearth/languages.json names a language \"" +
                        toUtf8(std::string_view(name).substr(0, 64)) + "\"")
            .hint(std::string("a language's name is ") + kLanguageNameRule);
    }
}

/// Returns the command's words, without empty ones.
Json command(const std::string& program, const char* driver, const char* argument) {
    Json words = Json::array({program});
    for (const char* word : {driver, argument}) {
        if (*word != '\0') words.push_back(word);
    }
    return words;
}

Json languages(const std::string& path) {
    Json table = ownTable();
    if (!table.is_null()) return table;
    table = Json::object();
    for (const LanguageProbe& probe : kLanguageProbes) {
        if (table.contains(probe.language)) continue;
        const std::string program = find(probe.program, path);
        if (program.empty()) continue;
        Json how{{"file", probe.file}, {"run", command(program, probe.runner, "{file}")}};
        if (*probe.runner == '\0') how["channel"] = false;
        if (*probe.zygote != '\0') how["zygote"] = command(program, probe.zygote, "");
        if (*probe.context != '\0') how["context"] = command(program, probe.context, "");
        table[probe.language] = std::move(how);
    }
    return table;
}

}  // namespace

std::vector<std::string> takeableEnv(const std::vector<std::string>& env) {
    std::vector<std::string> taken;
    std::size_t bytes = 0;
    for (const std::string& variable : env) {
        if (!takeable(variable)) continue;
        bytes += variable.size();
        if (bytes > kMaxEnv) break;
        taken.push_back(variable);
    }
    return taken;
}

ImageFacts probeImage(const std::string& tree, const ImageConfig& config) {
    ImageFacts facts;
    facts.env = takeableEnv(config.env);
    if (config.workdir.starts_with('/') && config.workdir.size() <= kMaxWorkdir &&
        isUtf8(config.workdir)) {
        facts.workdir = config.workdir;
    }
    const std::string own = pathOf(facts.env);
    const std::string path = own + (own.empty() ? "" : ":") + kUsualPath;
    sys::Supervised probe;
    probe.argv = {"probe"};
    probe.limit = kProbeLimit;
    probe.enter = [&] {
        if (::chroot(tree.c_str()) != 0 || ::chdir("/") != 0) throwErrno("chroot", tree);
        const std::string text = dumpJson(languages(path));
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t n = ::write(1, text.data() + at, text.size() - at);
            if (n <= 0) ::_exit(1);
            at += static_cast<std::size_t>(n);
        }
        ::_exit(0);
    };
    const sys::Outcome outcome = sys::supervise(probe);
    if (outcome.status != 0) {
        throw Error(ErrorCode::InvalidArgument, "the image cannot be inspected");
    }
    facts.languages = Json::parse(outcome.out, nullptr, false);
    if (!facts.languages.is_object()) facts.languages = Json::object();
    checkNames(facts.languages);
    return facts;
}

Json encodeFacts(const ImageFacts& facts) {
    return {{"env", facts.env}, {"workdir", facts.workdir}, {"languages", facts.languages}};
}

ImageFacts decodeFacts(const std::string& text) {
    ImageFacts facts;
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return facts;
    const auto env = json.find("env");
    if (env != json.end() && env->is_array()) {
        for (const Json& variable : *env) {
            if (variable.is_string()) facts.env.push_back(variable.get<std::string>());
        }
    }
    const auto workdir = json.find("workdir");
    if (workdir != json.end() && workdir->is_string()) facts.workdir = workdir->get<std::string>();
    const auto known = json.find("languages");
    if (known != json.end() && known->is_object()) facts.languages = *known;
    return facts;
}

}  // namespace hearth::pool::image
