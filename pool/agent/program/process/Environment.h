#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The environment of tenant processes. The later of these overrides the earlier: the sandbox's
/// own, the image's, the bind's, the request's, its GPU driver's. Entries are `NAME=value`, sorted.
class Environment {
public:
    explicit Environment(const Settings& settings);

    /// The image's facts: {env: ["NAME=value"], workdir, languages}; null if unknown.
    const JsonValue& image() const noexcept { return image_; }
    /// Variables and secrets of the bind.
    void bind(std::map<std::string, std::string> env) { bound_ = std::move(env); }

    /// Sets the thread counts of numeric libraries to this number of processors, if it is lower
    /// than at the start; 0 or less changes nothing.
    void narrowTo(std::int64_t cpus);
    bool narrowed() const noexcept { return cpus_ != settings_.cpus; }

    /// Without the bind's variables: the start environment of an interpreter started before it.
    std::vector<std::string> unbound() const { return make({}, JsonValue(), false); }
    /// The environment of an execution that adds nothing.
    std::vector<std::string> plain() const { return make(bound_, JsonValue(), false); }
    /// `extra` is the request's object; false if a name or value cannot be in an environment.
    bool with(const JsonValue& extra, bool pty, std::vector<std::string>& out) const;

    /// Reads `{"NAME": "value"}` into `out`; false if a name or value cannot be in an environment.
    static bool read(const JsonValue& body, std::map<std::string, std::string>& out);
    /// True if the two differ in a variable that interpreters, loaders or numeric libraries read
    /// only at their start: then a process started with `before` cannot serve `wanted`.
    static bool actsAtStart(const std::vector<std::string>& before,
                            const std::vector<std::string>& wanted);

private:
    std::vector<std::string> make(const std::map<std::string, std::string>& bound,
                                  const JsonValue& extra, bool pty) const;

    const Settings& settings_;
    const JsonValue image_;
    std::map<std::string, std::string> gpu_;
    std::map<std::string, std::string> bound_;
    std::string cpus_;
};

}  // namespace hearth::agent
