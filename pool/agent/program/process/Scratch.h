#pragma once

#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The directory of one execution of code: `/tmp/.hearth/<id>`, with the tenant's identity. It
/// holds the code; it is removed when the execution has ended.
class Scratch {
public:
    explicit Scratch(const Settings& settings) : settings_(settings) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { remove(); }

    /// Makes the directory and the file in it. False if the tenant's /tmp does not allow it.
    bool create(std::string_view id, const std::string& file, std::string_view code);
    /// The path of the directory, empty if there is none.
    const std::string& path() const noexcept { return path_; }
    /// Bounded: files that a tenant piled up in it may stay.
    void remove() noexcept;

private:
    const Settings& settings_;
    std::string id_;
    std::string path_;
    Fd base_;
    Fd dir_;
};

}  // namespace hearth::agent
