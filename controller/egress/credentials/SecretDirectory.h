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
    /// The credential's current secret, without a final newline. Throws Refused (502) with a text
    /// for the caller.
    std::string value(const Credential& credential) const;
    /// Why it has no secret now, in words for an operator; "" if it has one.
    std::string lackOf(const Credential& credential) const;

private:
    enum class Lack { None, NoDirectory, NoFile, Unreadable, NoSecret };
    /// The value, or what is the matter.
    std::pair<std::string, Lack> read(const Credential& credential) const;

    const std::string directory_;
};

}  // namespace hearth::broker
