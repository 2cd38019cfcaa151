#include "pool/agent/program/process/Environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

namespace hearth::agent {

namespace {

/// The names; one that ends with '*' stands for every name with that beginning. Python looks in
/// HOME for the user's packages.
constexpr std::array<std::string_view, 14> kReadAtStart{
    "PYTHON*",   "LD_*",     "OMP_*",   "MKL_*", "OPENBLAS_*", "GOMP_*",   "KMP_*",
    "NUMEXPR_*", "MALLOC_*", "GLIBC_*", "LC_*",  "LANG",       "LANGUAGE", "HOME"};

constexpr const char* kLayerSite = "/.hearth/site";

bool hasNul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

bool isReadAtStart(std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    return std::any_of(kReadAtStart.begin(), kReadAtStart.end(), [name](std::string_view known) {
        if (known.back() != '*') return name == known;
        known.remove_suffix(1);
        return name.substr(0, known.size()) == known;
    });
}

JsonValue parsed(const std::string& text) {
    JsonValue value;
    return JsonValue::parse(text, value) ? value : JsonValue();
}

/// Adds one "NAME=value" text to `out`.
void readOne(std::string_view text, std::map<std::string, std::string>& out) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) return;
    out[std::string(text.substr(0, equals))] = text.substr(equals + 1);
}

void readList(const JsonValue& list, std::map<std::string, std::string>& out) {
    for (const JsonValue& variable : list.items()) readOne(variable.text(), out);
}

}  // namespace

Environment::Environment(const Settings& settings)
    : settings_(settings), image_(parsed(settings.image)), cpus_(settings.cpus) {
    readList(parsed(settings.gpu)["env"], gpu_);
}

void Environment::narrowTo(std::int64_t cpus) {
    if (cpus > 0 && cpus < std::strtoll(cpus_.c_str(), nullptr, 10)) cpus_ = std::to_string(cpus);
}

bool Environment::read(const JsonValue& body, std::map<std::string, std::string>& out) {
    for (std::size_t i = 0; i < body.keys().size(); ++i) {
        const std::string& name = body.keys()[i];
        const JsonValue& value = body.items()[i];
        if (name.empty() || name.find('=') != std::string::npos || hasNul(name)) return false;
        if (!value.isString() || hasNul(value.text())) return false;
        out[name] = value.text();
    }
    return true;
}

bool Environment::with(const JsonValue& extra, bool pty, std::vector<std::string>& out) const {
    std::map<std::string, std::string> ignored;
    if (!read(extra, ignored)) return false;
    out = make(bound_, extra, pty);
    return true;
}

std::vector<std::string> Environment::make(const std::map<std::string, std::string>& bound,
                                           const JsonValue& extra, bool pty) const {
    std::map<std::string, std::string> env = {
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"HOME", settings_.root},
        {"USER", "sandbox"},
        {"LANG", "C.UTF-8"},
        {"TMPDIR", "/tmp"},
        {"MPLBACKEND", "Agg"},
        {"MPLCONFIGDIR", "/tmp/.mpl"},
        {"PYTHONDONTWRITEBYTECODE", "1"},
    };
    for (const std::string& text : settings_.inherited) readOne(text, env);
    readList(image_["env"], env);
    // The place where pip puts programs; last, so that nothing there replaces another program.
    env["PATH"] += ":" + settings_.root + "/.local/bin";
    if (!settings_.layer.empty()) {
        env["PATH"] += ":" + settings_.layer + "/bin";
        // A file in that folder makes the layer known to Python, and decides its order among the
        // other places.
        std::string& path = env["PYTHONPATH"];
        path = kLayerSite + (path.empty() ? "" : ":" + path);
    }
    // Only a hint: code runs in the workspace, because an image cannot be written to.
    if (image_["workdir"].isString() && !image_["workdir"].text().empty()) {
        env["HEARTH_IMAGE_WORKDIR"] = image_["workdir"].text();
    }
    if (pty) env["TERM"] = "xterm-256color";
    if (!cpus_.empty()) {
        for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
            env[name] = cpus_;
        }
    }
    for (const auto& [name, value] : bound) env[name] = value;
    read(extra, env);
    for (const auto& [name, value] : gpu_) env[name] = value;
    std::vector<std::string> out;
    out.reserve(env.size());
    for (const auto& [name, value] : env) out.emplace_back(name).append("=").append(value);
    return out;
}

bool Environment::actsAtStart(const std::vector<std::string>& before,
                              const std::vector<std::string>& wanted) {
    std::vector<std::string> changed;
    std::set_symmetric_difference(before.begin(), before.end(), wanted.begin(), wanted.end(),
                                  std::back_inserter(changed));
    return std::any_of(changed.begin(), changed.end(), isReadAtStart);
}

}  // namespace hearth::agent
