#pragma once

#include <string>
#include <utility>

#include "controller/egress/policy/Credential.h"

namespace hearth::broker {

/// The operator's secrets: a file for each, and below `tenants/NAME/` those of a tenant. Read when
/// a request needs one, so that a file that is replaced counts from then on. Nothing is kept.
/// Thread-safe.
class SecretDirectory {
public:
    /// Empty: there are none.
    explicit SecretDirectory(std::string directory) : directory_(std::move(directory)) {}

    bool exists() const noexcept { return !directory_.empty(); }
    /// What the credential stands for now; a line's end after it is left out. Throws Refused (502)
    /// in words for whoever asked.
    std::string value(const Credential& credential) const;
    /// Why it stands for nothing now, in words for an operator; "" if it stands for something.
    std::string lackOf(const Credential& credential) const;

private:
    enum class Lack { None, NoDirectory, NoFile, Unreadable, NoSecret };
    /// The value, or what is the matter.
    std::pair<std::string, Lack> read(const Credential& credential) const;

    const std::string directory_;
};

}  // namespace hearth::broker
