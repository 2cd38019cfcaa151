#pragma once

#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The folder of one execution of code: `/.hearth/run/<name>`. It holds the code, and tenants may
/// write beside it; it is removed when the execution has ended.
class Scratch {
public:
    explicit Scratch(const Settings& settings) : settings_(settings) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { remove(); }

    /// Makes the folder, and the file in it. Returns 0, or the errno of the failure.
    int create(std::string_view name, const std::string& file, std::string_view code);
    /// The two halves of create(): the first needs no code yet, so nobody has to wait for it. The
    /// second fails if the tenant has removed the file in between.
    int prepare(std::string_view name, const std::string& file);
    int write(std::string_view code);
    /// The path of the file; empty if there is none.
    const std::string& file() const noexcept { return file_; }
    /// Bounded: if a tenant piled up files in the folder, a child of the agent removes them.
    void remove() noexcept;

private:
    void removeRest() noexcept;

    const Settings& settings_;
    std::string name_;
    std::string file_;
    Fd base_;
    Fd dir_;
    Fd out_;  ///< the file between prepare() and write()
};

}  // namespace hearth::agent
