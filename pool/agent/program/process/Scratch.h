#pragma once

#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The folder of one execution of code: `/.hearth/run/<id>`. It holds the code, and tenants may
/// write beside it; it is removed when the execution has ended.
class Scratch {
public:
    explicit Scratch(const Settings& settings) : settings_(settings) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { remove(); }

    /// Makes the folder, and the file in it. Returns 0, or the errno of the failure.
    int create(std::string_view id, const std::string& file, std::string_view code);
    /// The path of the file; empty if there is none.
    const std::string& file() const noexcept { return file_; }
    /// Bounded: files that a tenant piled up in the folder may stay.
    void remove() noexcept;

private:
    const Settings& settings_;
    std::string id_;
    std::string file_;
    Fd base_;
    Fd dir_;
};

}  // namespace hearth::agent
